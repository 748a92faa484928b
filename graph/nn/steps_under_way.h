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
  uint64_t training = 0;    // training steps begun; random masks follow it
  uint64_t evaluation = 0;  // the same for evaluations, which no state keeps
};

class StepsUnderWay {
 public:
  // `after_training` is told of a training step whose call had returned, once it is done, whether
  // it went well.
  explicit StepsUnderWay(std::function<void(bool ok)> after_training)
      : after_training_(std::move(after_training)) {}

  // Starts a step with the operands it was given. Errors: of this step, then nothing was started or
  // the step is over; of an earlier one, then this one has not run.
  absl::Status Launch(CompiledStep& step);
  // Waits for the outputs of all calls; what went wrong is kept for TakeError or Launch to tell.
  void Settle();
  absl::Status TakeError() { return std::exchange(late_error_, absl::OkStatus()); }
  // Whether outputs may still be under way.
  bool any() const { return step_ != nullptr; }

  RunCounts& counts() { return counts_; }
  const RunCounts& counts() const { return counts_; }

 private:
  std::function<void(bool ok)> after_training_;
  RunCounts counts_;
  CompiledStep* step_ = nullptr;  // the one whose outputs may still be under way
  absl::Status late_error_;       // of a step whose call had returned
};

}  // namespace halftone::nn
