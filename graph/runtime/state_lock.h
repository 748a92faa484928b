// StateLock: while it lives, other threads wait with what reads or writes the state of a graph. From
// nn::Graph::Lock.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::runtime {

class StateGuard;
class StateGuards;

// Holds guards while it lives. One that joins `guards` meanwhile (the holder has tied a parameter
// to that of another graph) is held from the next lock on.
class StateLock {
 public:
  // Waits for all of them.
  explicit StateLock(const StateGuards& guards);
  // For one; none if it is null.
  explicit StateLock(std::shared_ptr<StateGuard> guard);
  // Does not wait: check held().
  StateLock(const StateGuards& guards, std::try_to_lock_t);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

  bool held() const { return held_; }
  // Why nothing is held: FailedPrecondition in a child of fork() if another thread of the parent held
  // it then, so that what it was writing is half written. OK after a try.
  const absl::Status& status() const { return status_; }

 private:
  void AcquireAll();
  void ReleaseFirst(size_t count);

  std::shared_ptr<const std::vector<std::shared_ptr<StateGuard>>> list_;
  bool held_ = false;
  absl::Status status_;
};

}  // namespace halftone::runtime
