#include "halftone/graph/runtime/state_lock.h"

#include <utility>

#include "halftone/graph/runtime/state_guard.h"

namespace halftone::runtime {

StateLock::StateLock(const StateGuards& guards) {
  for (;;) {
    list_ = guards.list();
    AcquireAll();
    if (!held_ || guards.list() == list_) return;
    // The holder that it waited for has added one.
    ReleaseFirst(list_->size());
    held_ = false;
  }
}

StateLock::StateLock(std::shared_ptr<StateGuard> guard) {
  auto one = std::make_shared<StateGuards::List>();
  if (guard != nullptr) one->push_back(std::move(guard));
  list_ = std::move(one);
  AcquireAll();
}

StateLock::StateLock(const StateGuards& guards, std::try_to_lock_t /*try_to_lock*/)
    : list_(guards.list()) {
  for (size_t i = 0; i < list_->size(); ++i) {
    if ((*list_)[i]->TryAcquire()) continue;
    ReleaseFirst(i);
    return;
  }
  held_ = true;
}

StateLock::~StateLock() {
  if (held_) ReleaseFirst(list_->size());
}

void StateLock::AcquireAll() {
  for (size_t i = 0; i < list_->size(); ++i) {
    status_ = (*list_)[i]->Acquire();
    if (status_.ok()) continue;
    ReleaseFirst(i);
    return;
  }
  held_ = true;
}

void StateLock::ReleaseFirst(size_t count) {
  for (size_t i = count; i-- > 0;) (*list_)[i]->Release();
}

}  // namespace halftone::runtime
