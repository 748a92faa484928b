// Where the infinities and NaNs of a step began, from the ranges that a replay of it saw.
#pragma once

#include <optional>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/runtime/nonfinite_node.h"
#include "halftone/graph/runtime/replay.h"

namespace halftone::runtime {

// Nothing where outputs, gradients and new values of variables are finite. `lowered` is the graph
// that was replayed.
std::optional<NonFiniteNode> FindNonFinite(const ir::Graph& lowered, const SeenRanges& ranges);

}  // namespace halftone::runtime
