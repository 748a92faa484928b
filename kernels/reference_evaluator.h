// Runs single nodes through the reference kernels: constant folding, tests, and the reference
// device.
#pragma once

#include "halftone/graph/ir/evaluator.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Thread-safe. Tensors are plain whatever layout the node's types have. Also gives the value of
// `constant` nodes.
class ReferenceEvaluator : public ir::Evaluator {
 public:
  // `run_count` is the counter that random ops see.
  explicit ReferenceEvaluator(uint64_t run_count = 0) : run_count_(run_count) {}

  // Errors: Unimplemented (no reference kernel), InvalidArgument (an input's type differs from the
  // node's), OutOfRange (a run-time index: op, value, bound).
  absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::Node& node,
                                               absl::Span<const Tensor> inputs) const override;

 private:
  uint64_t run_count_;
};

// "gather(%g): index 12 at [3,0] out of range; expected 0..9" as OutOfRange.
absl::Status FaultError(const ir::Node& node, const Fault& fault);

}  // namespace halftone::kernels
