// The locks that keep graphs apart which share variables; StateLock holds them.
//
// Each graph's store has a guard. A variable takes the guard of the first store that knows it, and
// a store that shares the variable holds that one too. So a graph that shares nothing takes one
// lock a call, and two that share a variable have a guard in common.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/runtime/state_lock.h"

namespace halftone::runtime {

// A lock that its thread may take again, and that knows when its holder was left behind by fork().
class StateGuard {
 public:
  // Waits until no other thread holds it. Errors: FailedPrecondition in a child of fork() if
  // another thread of the parent held it then: what it was writing is half written.
  absl::Status Acquire();
  // Without waiting: false if another thread holds it.
  bool TryAcquire();
  void Release();

 private:
  static constexpr int kNobody = -1;

  void NoteAcquired();
  bool IsLost() const;

  std::recursive_mutex mutex_;
  int depth_ = 0;                      // how often its holder took it
  std::atomic<int> held_in_{kNobody};  // the holder's ForkGeneration
};

// Different guards, in the order in which everybody takes them. Thread-safe.
class StateGuards {
 public:
  using List = std::vector<std::shared_ptr<StateGuard>>;  // by address

  void Add(const std::shared_ptr<StateGuard>& guard);
  // As they are now.
  std::shared_ptr<const List> list() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const List> list_ = std::make_shared<List>();
};

}  // namespace halftone::runtime
