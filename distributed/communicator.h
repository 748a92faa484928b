// Communicator: one rank's view of a job of several processes, and what they do together. Ranks
// call the collective functions in the same order, each of them from any thread, one at a time.
//
// Invariants:
//  1. Nothing here waits for another rank for longer than the timeout.
//  2. After the first error of a message nothing works any more: what other ranks hold is unknown.
//     Every later call gives that error, and the process ends the job when it exits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/status.h"

namespace halftone::distributed {

class Collective;

// What goes to one rank and comes from it. Nothing of 0 bytes is sent; both sides agree in sizes.
struct Part {
  const void* send = nullptr;
  size_t send_bytes = 0;
  void* receive = nullptr;
  size_t receive_bytes = 0;
};

// Messages between this rank and others that are under way together.
class Round {
 public:
  virtual ~Round() = default;
  // parts[r]: with rank r; that of the own rank is left alone. The memory is the round's until Test
  // gives true. `tag` tells rounds apart that are under way at a time: the same on all ranks.
  virtual absl::Status Start(absl::Span<const Part> parts, int tag) = 0;
  // Whether all has been sent and has come. Never waits.
  virtual absl::StatusOr<bool> Test() = 0;
  // The lowest rank whose message has not come; -1: none, or only sending is left.
  virtual int Missing() const = 0;
};

class Communicator {
 public:
  // Of `size` ranks, `local_size` of them on this machine.
  Communicator(int rank, int size, int local_rank, int local_size, double timeout_seconds);
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  double timeout_seconds() const { return timeout_seconds_; }
  // The first error of a message; OK while all is well.
  const absl::Status& status() const { return status_; }

  virtual std::unique_ptr<Round> NewRound() = 0;

  // Waits for a round that was started; `what` is named in errors. Errors: DeadlineExceeded, naming a
  // rank of which nothing came; Unavailable: the transport's.
  absl::Status Wait(Round& round, const char* what);
  // Every rank's bytes, in order of rank. Errors: those of Wait.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& mine, const char* what);
  // The bytes of rank `root`, on all. Errors: those of Wait.
  absl::Status Broadcast(void* data, size_t bytes, int root);
  // OK if `own` is on every rank; else on every rank the error of the lowest that has one, "rank 2:
  // ..." before its message. Errors besides: those of Wait.
  absl::Status Agree(const absl::Status& own, const char* what);
  // The bytes of rank `from`, on rank `to`; the others take part in the order of calls alone. Errors:
  // those of Wait.
  absl::Status Send(void* data, size_t bytes, int from, int to);
  // Waits until all ranks are here. Errors: those of Wait.
  absl::Status Barrier(const char* what);
  // The lowest rank that does not answer within some seconds; -1: all do. For whoever has waited in vain
  // elsewhere: all ranks that have call it, and nothing is exchanged afterwards.
  int FindSilent(double seconds);

  // A tag for a round that all ranks start next.
  int NextTag();
  // Lets the collectives under way go on. Never waits; errors are kept for their Wait.
  void Progress();
  bool any_under_way() const { return !under_way_.empty(); }
  // The collective under way whose buffer this is; null if there is none.
  Collective* Find(const void* buffer) const;
  // Waits for all collectives under way and forgets them: a step has failed.
  absl::Status Drain();
  // Keeps the first error and gives it.
  absl::Status Fail(absl::Status error);

 private:
  friend class Collective;
  const int rank_, size_, local_rank_, local_size_;
  const double timeout_seconds_;
  absl::Status status_;
  int next_tag_ = 0;
  std::vector<Collective*> under_way_;  // in the order of their starts
  // Of FindSilent, whose messages may still come.
  std::unique_ptr<Round> question_;
  std::vector<char> answers_;
};

// Of who waits for another process: gives the processor to others, after a while for longer.
class Patience {
 public:
  explicit Patience(double seconds) : seconds_(seconds) {}
  // A pause; false once the time is over.
  bool Pause();

 private:
  const double seconds_;
  int64_t pauses_ = 0;
  double begin_ = 0;
};

}  // namespace halftone::distributed
