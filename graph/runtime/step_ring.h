// StepRing: page-locked memory for the steps that an accelerator still works on, and the way of
// their outputs to the caller.
//
// A step takes a slot: the host writes inputs into it, the device copies them in and its outputs
// back, and when the slot is needed again, or somebody asks, the outputs go to where the caller
// wants them. So the host runs up to kSlots steps ahead and never waits for the last one.
//
// Outputs are delivered in the order of the steps, so several steps may fill a buffer, and who waits
// for the last has all of it. Thread-safe: any thread may read an output.
//
// Of steps that several processes make together all must begin the same ones. All have the errors of the
// same steps, but hear of them when they read outputs, each at its own time. So Begin tells of an error
// when the slot of its step is needed, and Finish, which all call, of those before.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/allocator.h"
#include "halftone/kernels/device_backend.h"

namespace halftone::runtime {

class StepRing : public std::enable_shared_from_this<StepRing> {
 public:
  static constexpr size_t kSlots = 3;

  // Where a slot keeps what comes back from the device.
  struct Output {
    size_t offset, bytes;
  };
  // Tells the error of a step from its slot; OK if it had none.
  using Check = std::function<absl::Status(const char* slot)>;

  // Errors: ResourceExhausted.
  // `together`: with other processes.
  static absl::StatusOr<std::shared_ptr<StepRing>> Create(kernels::DeviceBackend& backend,
                                                          size_t slot_bytes,
                                                          std::vector<Output> outputs, Check check,
                                                          bool together = false);

  // The slot of the next step, after its former step has delivered. Errors: the first of an earlier
  // step that nobody has been told of (together: of the slot's former step); no step is begun then.
  absl::StatusOr<char*> Begin();
  // All work of the step is on the stream; its outputs go to `outputs`.
  absl::Status Commit(void* const* outputs);
  // `buffers` own the outputs of the step committed last; null where nobody waits by it. Null if
  // another thread has seen to their delivery already.
  std::shared_ptr<PendingWrite> Watch(absl::Span<Buffer* const> buffers);
  // Waits for all steps and delivers. The first error since the last call of Finish or Begin.
  absl::Status Finish();
  // Whether the last step that has delivered failed.
  bool last_failed() const;
  // The same as Finish, for good: the check is not called any more, and outputs that outlive the
  // graph keep neither page-locked memory nor events. No step may follow.
  void Close();

 private:
  struct Slot : PendingWrite {
    void Wait() override;
    void Forget(Buffer& buffer) override;

    StepRing* ring = nullptr;
    uint64_t step = 0;  // from 1
    char* data = nullptr;
    std::shared_ptr<kernels::DeviceEvent> done;  // shared with those who wait for it
    std::vector<void*> to;                       // by output; null: nowhere any more
    std::vector<Buffer*> buffers;                // by output
  };

  StepRing() = default;
  Slot& SlotOf(uint64_t step) { return slots_[step % kSlots]; }
  void DeliverThrough(uint64_t step);
  // Gives the lock up while it waits, so that other threads may begin, commit and forget.
  void DeliverThrough(uint64_t step, std::unique_lock<std::mutex>& lock);
  void Deliver(Slot& slot, absl::Status status);
  // The first error of the steps up to this one, and forgets those.
  absl::Status TakeError(uint64_t last_step);

  struct Error {
    uint64_t step;
    absl::Status status;
  };

  kernels::DeviceBackend* backend_ = nullptr;
  std::vector<Output> outputs_;
  mutable std::mutex mutex_;  // over what follows
  std::unique_ptr<kernels::DeviceMemory> memory_;
  Check check_;
  std::array<Slot, kSlots> slots_;
  uint64_t committed_ = 0, delivered_ = 0;
  std::vector<Error> errors_;  // that nobody has been told of; of steps made alone the first one
  bool together_ = false;
  bool last_failed_ = false;
};

}  // namespace halftone::runtime
