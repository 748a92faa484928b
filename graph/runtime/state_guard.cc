#include "halftone/graph/runtime/state_guard.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "halftone/core/fork.h"

namespace halftone::runtime {

bool StateGuard::IsLost() const {
  const int held_in = held_in_.load(std::memory_order_relaxed);
  return held_in != kNobody && held_in != ForkGeneration();
}

void StateGuard::NoteAcquired() {
  if (depth_++ == 0) held_in_.store(ForkGeneration(), std::memory_order_relaxed);
}

absl::Status StateGuard::Acquire() {
  if (IsLost()) {
    return FailedPrecondition(
        "a call was under way in another thread at the time of fork(), "
        "which leaves that thread behind: the graph's state is half written; "
        "fork while no call is under way, or load a checkpoint into a new graph");
  }
  mutex_.lock();
  NoteAcquired();
  return absl::OkStatus();
}

bool StateGuard::TryAcquire() {
  if (IsLost() || !mutex_.try_lock()) return false;
  NoteAcquired();
  return true;
}

void StateGuard::Release() {
  if (--depth_ == 0) held_in_.store(kNobody, std::memory_order_relaxed);
  mutex_.unlock();
}

void StateGuards::Add(const std::shared_ptr<StateGuard>& guard) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = std::lower_bound(list_->begin(), list_->end(), guard,
                                   std::less<std::shared_ptr<StateGuard>>());
  if (at != list_->end() && *at == guard) return;
  auto longer = std::make_shared<List>(list_->begin(), at);
  longer->push_back(guard);
  longer->insert(longer->end(), at, list_->end());
  list_ = std::move(longer);
}

std::shared_ptr<const StateGuards::List> StateGuards::list() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return list_;
}

}  // namespace halftone::runtime
