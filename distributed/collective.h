// Collective: an exchange between all ranks, in one or two turns of messages, that goes on while
// something else runs. All ranks start the same collectives in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/status.h"
#include "halftone/distributed/communicator.h"

namespace halftone::distributed {

class Collective {
 public:
  virtual ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Does what can be done without waiting.
  void Advance();
  // Waits until the buffer has the results. `*failed`: whether any rank had failed; results are then of
  // no use. Errors: those of Communicator::Wait.
  absl::Status Wait(bool* failed);

  const void* buffer() const { return buffer_; }

 protected:
  // `what` is named in errors; `turns`: 1 or 2.
  Collective(Communicator& communicator, const char* what, int turns);

  // Begins; the buffer is this object's until Wait. Errors are kept for Wait.
  void Begin(void* buffer);
  char* bytes() const { return buffer_; }
  const Communicator& communicator() const { return communicator_; }

  // What goes to each rank in a turn and comes from it, as Round::Start takes it.
  virtual void FillParts(int turn, absl::Span<Part> parts) const = 0;
  // All of a turn has come.
  virtual void EndTurn(int /*turn*/) {}
  // Of the results: whether a rank has sent word of its failure.
  virtual bool HasFailed() const { return false; }

 private:
  void StartTurn();
  bool under_way() const { return turn_ < turns_; }

  Communicator& communicator_;
  const char* const what_;
  const int turns_;
  const std::unique_ptr<Round> round_;
  std::vector<Part> parts_;
  char* buffer_ = nullptr;
  int turn_;  // turns_: none is under way
  bool is_idle_ = true;
  int tags_[2] = {};
};

}  // namespace halftone::distributed
