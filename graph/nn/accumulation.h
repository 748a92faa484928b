// Accumulation: the micro-batches whose gradients give one update. A call runs the step that adds
// its gradients to their sums, once or for each part of its batch; where it ends the window, the
// step that updates the parameters follows. Both are steps of passes/autodiff/accumulate_gradients.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/status.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/nn/compiled_step.h"
#include "halftone/graph/nn/graph_state.h"
#include "halftone/graph/nn/steps_under_way.h"

namespace halftone::nn {

class Accumulation {
 public:
  // Both must outlive it.
  Accumulation(StepsUnderWay& under_way, GraphState& state)
      : under_way_(under_way), state_(state) {}

  // Starts a step whose operands are set, once for each of its micro-batches. Errors: those of
  // StepsUnderWay::Launch, what of the call was added is then out of the window again unless an
  // earlier call has begun it; FailedPrecondition for a step that does not fit the window under
  // way.
  absl::Status Run(CompiledStep& step);
  // Whether the window ends with the call that has run `step`.
  bool EndsWith(const CompiledStep& step) {
    return step.update != nullptr && micro_batches() >= step.window();
  }
  // The update of the window; null where nothing was compiled since the window was loaded.
  CompiledStep* update() { return update_.get(); }
  // Starts update(), which ends the window. Errors: those of StepsUnderWay::Launch.
  absl::Status Update();
  // What is compiled may come to be the update of a window that was loaded.
  void Offer(const CompiledStep& step);
  // Compiled steps are out of date.
  void Forget() { update_ = nullptr; }

 private:
  uint64_t& micro_batches() { return under_way_.counts().micro_batches; }
  absl::Status CheckFits(const CompiledStep& step);
  // After an error in a call before which there were `before` micro-batches.
  void Recount(uint64_t before);

  StepsUnderWay& under_way_;
  GraphState& state_;
  std::shared_ptr<CompiledStep> update_;  // of the window; null: not known yet
};

// The types of a micro-batch of `in`, one of `count`: its part of dimension 0; of values without
// dimensions the whole. Error: InvalidArgument for an input that does not divide.
absl::StatusOr<std::vector<ir::ValueType>> MicroBatchTypes(absl::Span<const Tensor> in,
                                                           size_t count);
// What the outputs of `count` micro-batches are together: joined along dimension 0, single numbers
// as a vector.
ir::ValueType JoinedType(const ir::ValueType& micro_batch, size_t count);

}  // namespace halftone::nn
