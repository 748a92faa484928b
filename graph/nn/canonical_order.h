// The one order of a traced step. In `a(x) * b(x)` the compiler chooses which operand is traced
// first; names, random masks and the order of sums must not follow it.
#pragma once

#include <memory>

#include "halftone/graph/ir/graph.h"

namespace halftone::nn::internal {

// The same step with its nodes in an order that follows from what reads what alone: inputs; what
// the outputs of build() need, operands from the first to the last; then roots, those of one kind
// as they were made, but commits by the name of their variable; what nothing reads comes last.
// Names are counted anew in that order, and the seeds of each scope's random ops are handed out in
// it. Nodes keep their locations.
std::unique_ptr<ir::Graph> InCanonicalOrder(const ir::Graph& traced);

}  // namespace halftone::nn::internal
