// Replaces a node by the simpler ops that its record gives; shared by decompose-unsupported and
// autodiff.
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Appends the decomposition of `node`, moves its users there and removes it. An op that accumulates
// in f32 gets its 16-bit operands cast to f32 first, and results are cast back, so that the simpler
// ops round no more often than the one op did. The caller sorts the graph.
// Requires: node.op().decompose. Errors: Internal, if the decomposition gives other types than the
// op.
absl::Status ReplaceByDecomposition(ir::Node& node, const char* pass);

}  // namespace halftone::passes
