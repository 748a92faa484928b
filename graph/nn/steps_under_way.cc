#include "halftone/graph/nn/steps_under_way.h"

#include <memory>

namespace halftone::nn {

absl::Status StepsUnderWay::Launch(CompiledStep& step) {
  runtime::Executable& executable = *step.executable;
  // Hidden outputs are written in the order of the steps; only one executable keeps it.
  if (step_ != &step) Settle();
  HT_RETURN_IF_ERROR(TakeError());
  uint64_t* const count = step.training ? &counts_.training : &counts_.evaluation;
  HT_RETURN_IF_ERROR(executable.Start(step.in.data(), step.out.data(), count));
  if (!executable.writes_outputs_later()) return absl::OkStatus();
  step_ = &step;
  const std::shared_ptr<PendingWrite> pending = executable.WatchOutputs(step.buffers);
  for (Buffer* buffer : step.buffers) {
    if (buffer != nullptr) buffer->SetPending(pending);
  }
  return absl::OkStatus();
}

void StepsUnderWay::Settle() {
  if (step_ == nullptr) return;
  const CompiledStep& step = *std::exchange(step_, nullptr);
  const absl::Status status = step.executable->Finish();
  if (step.training) after_training_(!step.executable->last_step_failed());
  if (late_error_.ok()) late_error_ = status;
}

}  // namespace halftone::nn
