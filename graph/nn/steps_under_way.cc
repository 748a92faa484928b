#include "halftone/graph/nn/steps_under_way.h"

#include <memory>

namespace halftone::nn {

absl::Status StepsUnderWay::Launch(CompiledStep& step, bool last_of_call) {
  runtime::Executable& executable = *step.executable;
  CompiledStep*& under_way = step.is_update ? update_ : step_;
  // Hidden outputs are written in the order of the steps; only one executable keeps it.
  if (under_way != nullptr && under_way != &step) Settle();
  HT_RETURN_IF_ERROR(TakeError());
  uint64_t* const count = step.is_update  ? &counts_.updates
                          : step.training ? &counts_.training
                                          : &counts_.evaluation;
  HT_RETURN_IF_ERROR(executable.Start(step.in.data(), step.out.data(), count));
  if (!executable.writes_outputs_later()) return absl::OkStatus();
  under_way = &step;
  // Outputs come in the order of the steps: who waits for the last has those before.
  if (!last_of_call) return absl::OkStatus();
  const std::shared_ptr<PendingWrite> pending = executable.WatchOutputs(step.buffers);
  for (Buffer* buffer : step.buffers) {
    if (buffer != nullptr) buffer->SetPending(pending);
  }
  return absl::OkStatus();
}

void StepsUnderWay::Settle() {
  Settle(step_);
  Settle(update_);
}

void StepsUnderWay::Settle(CompiledStep*& under_way) {
  if (under_way == nullptr) return;
  const CompiledStep& step = *std::exchange(under_way, nullptr);
  const absl::Status status = step.executable->Finish();
  if (step.training) after_training_(!step.executable->last_step_failed());
  if (late_error_.ok()) late_error_ = status;
}

}  // namespace halftone::nn
