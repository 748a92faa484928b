// Replaces nodes by the simpler ops that their records give; shared by decompose-unsupported and
// autodiff.
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Appends the decompositions of `nodes`, which are in node order, moves the users there and removes
// the nodes. An op that accumulates in f32 gets its 16-bit operands cast to f32 first, and results
// are cast back, so that the simpler ops round no more often than the one op did. The caller sorts
// the graph.
// Requires: each op has a decomposition. Errors: Internal, if a decomposition gives other types
// than the op.
absl::Status ReplaceByDecompositions(ir::Graph& graph, const std::vector<ir::Node*>& nodes,
                                     const char* pass);

}  // namespace halftone::passes
