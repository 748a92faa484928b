#include "halftone/graph/runtime/step_ring.h"

#include <cstring>
#include <functional>
#include <utility>

namespace halftone::runtime {

absl::StatusOr<std::shared_ptr<StepRing>> StepRing::Create(kernels::DeviceBackend& backend,
                                                           size_t slot_bytes,
                                                           std::vector<Output> outputs, Check check,
                                                           bool together) {
  std::shared_ptr<StepRing> ring(new StepRing());
  ring->backend_ = &backend;
  HT_ASSIGN_OR_RETURN(ring->memory_, backend.AllocatePinned(kSlots * slot_bytes));
  ring->outputs_ = std::move(outputs);
  ring->check_ = std::move(check);
  ring->together_ = together;
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = ring->slots_[i];
    slot.ring = ring.get();
    slot.data = static_cast<char*>(ring->memory_->data()) + i * slot_bytes;
    HT_ASSIGN_OR_RETURN(slot.done, backend.NewEvent());
    slot.to.resize(ring->outputs_.size());
    slot.buffers.resize(ring->outputs_.size());
  }
  return ring;
}

absl::StatusOr<char*> StepRing::Begin() {
  const uint64_t former = committed_ + 1 > kSlots ? committed_ + 1 - kSlots : 0;
  DeliverThrough(former);
  HT_RETURN_IF_ERROR(TakeError(together_ ? former : committed_));
  return SlotOf(committed_ + 1).data;
}

absl::Status StepRing::Commit(void* const* outputs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = SlotOf(committed_ + 1);
  HT_RETURN_IF_ERROR(backend_->Record(*slot.done));
  slot.step = ++committed_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    slot.to[i] = outputs[i];
    slot.buffers[i] = nullptr;
  }
  return absl::OkStatus();
}

std::shared_ptr<PendingWrite> StepRing::Watch(absl::Span<Buffer* const> buffers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (delivered_ == committed_) return nullptr;
  Slot& slot = SlotOf(committed_);
  for (size_t i = 0; i < buffers.size(); ++i) slot.buffers[i] = buffers[i];
  return std::shared_ptr<PendingWrite>(shared_from_this(), &slot);
}

absl::Status StepRing::Finish() {
  DeliverThrough(committed_);
  return TakeError(committed_);
}

void StepRing::Close() {
  DeliverThrough(committed_);
  std::unique_ptr<kernels::DeviceMemory> memory;  // given back without the lock: that may wait
  const std::lock_guard<std::mutex> lock(mutex_);
  check_ = nullptr;
  for (Slot& slot : slots_) {
    slot.data = nullptr;
    slot.done = nullptr;
  }
  memory = std::move(memory_);
}

void StepRing::DeliverThrough(uint64_t step) {
  std::unique_lock<std::mutex> lock(mutex_);
  DeliverThrough(step, lock);
}

void StepRing::DeliverThrough(uint64_t step, std::unique_lock<std::mutex>& lock) {
  while (delivered_ < step && delivered_ < committed_) {
    const uint64_t next = delivered_ + 1;
    const std::shared_ptr<kernels::DeviceEvent> done = SlotOf(next).done;
    lock.unlock();
    absl::Status status = backend_->CheckProcess();
    if (status.ok()) status = done->Wait();
    lock.lock();
    // Else another thread was faster, and the event may be of a later step by now.
    if (delivered_ + 1 == next) {
      Deliver(SlotOf(next), std::move(status));
      delivered_ = next;
    }
  }
}

void StepRing::Deliver(Slot& slot, absl::Status status) {
  if (status.ok() && check_ != nullptr) status = check_(slot.data);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (status.ok() && slot.to[i] != nullptr && outputs_[i].bytes > 0) {
      std::memcpy(slot.to[i], slot.data + outputs_[i].offset, outputs_[i].bytes);
    }
    if (slot.buffers[i] != nullptr) slot.buffers[i]->ClearPending();
    slot.to[i] = nullptr;
    slot.buffers[i] = nullptr;
  }
  last_failed_ = !status.ok();
  if (!status.ok() && (together_ || errors_.empty())) {
    errors_.push_back({slot.step, std::move(status)});
  }
}

bool StepRing::last_failed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_failed_;
}

absl::Status StepRing::TakeError(uint64_t last_step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (errors_.empty() || errors_[0].step > last_step) return absl::OkStatus();
  const absl::Status first = errors_[0].status;
  std::erase_if(errors_, [&](const Error& error) { return error.step <= last_step; });
  return first;
}

void StepRing::Slot::Wait() {
  std::unique_lock<std::mutex> lock(ring->mutex_);
  ring->DeliverThrough(step, lock);
}

void StepRing::Slot::Forget(Buffer& buffer) {
  const std::lock_guard<std::mutex> lock(ring->mutex_);
  const auto* const begin = static_cast<const char*>(buffer.address());
  for (Slot& slot : ring->slots_) {
    if (slot.step > step) continue;
    for (size_t i = 0; i < slot.to.size(); ++i) {
      // Earlier steps may fill parts of it that nobody waits for by themselves.
      const auto* const at = static_cast<const char*>(slot.to[i]);
      const bool inside = !std::less<>()(at, begin) && std::less<>()(at, begin + buffer.size());
      if (slot.buffers[i] != &buffer && !inside) continue;
      slot.buffers[i] = nullptr;
      slot.to[i] = nullptr;
    }
  }
}

}  // namespace halftone::runtime
