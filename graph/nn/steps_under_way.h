// StepsUnderWay: starts compiled steps, counts them, and waits for those that a device still works
// on.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "halftone/core/status.h"
#include "halftone/graph/nn/compiled_step.h"

namespace halftone::nn {

struct RunCounts {
  // Training steps begun, micro-batches where gradients are accumulated; random masks follow it.
  uint64_t training = 0;
  uint64_t evaluation = 0;  // the same for evaluations, which no state keeps
  uint64_t updates = 0;     // by accumulated gradients, which nothing random follows
  // Whose gradients wait for their update. A graph variable has the same count, for the device.
  uint64_t micro_batches = 0;
};

class StepsUnderWay {
 public:
  // `after_training` is told of a training step whose call had returned, once it is done, whether
  // it went well.
  explicit StepsUnderWay(std::function<void(bool ok)> after_training)
      : after_training_(std::move(after_training)) {}

  // Starts a step with the operands it was given. Errors: of this step, then nothing was started or
  // the step is over; of an earlier one, then this one has not run. Where another step goes on with
  // the same buffers, this is not the `last_of_call`.
  absl::Status Launch(CompiledStep& step, bool last_of_call = true);
  // Waits for the outputs of all calls; what went wrong is kept for TakeError or Launch to tell.
  void Settle();
  absl::Status TakeError() { return std::exchange(late_error_, absl::OkStatus()); }
  // Whether outputs may still be under way.
  bool any() const { return step_ != nullptr || update_ != nullptr; }

  RunCounts& counts() { return counts_; }
  const RunCounts& counts() const { return counts_; }

 private:
  void Settle(CompiledStep*& step);

  std::function<void(bool ok)> after_training_;
  RunCounts counts_;
  // Those whose outputs may still be under way. An update by accumulated gradients writes hidden
  // outputs only, and the steps before it none: neither waits for the other.
  CompiledStep* step_ = nullptr;
  CompiledStep* update_ = nullptr;
  absl::Status late_error_;  // of a step whose call had returned
};

}  // namespace halftone::nn
