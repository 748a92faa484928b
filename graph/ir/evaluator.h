// Evaluator: runs one node on concrete tensors; for constant folding and tests. Implemented by the
// reference kernels.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // One tensor per output, in plain layout. Errors: Unimplemented (no kernel), OutOfRange (a
  // run-time index).
  virtual absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node,
                                                       absl::Span<const Tensor> inputs) const = 0;
};

}  // namespace halftone::ir
