// Which nodes of a step can be the first to raise a fault.
#pragma once

#include <set>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// The nodes whose run-time indices no earlier node checks: one that reads the same indices, bounds
// them at least as tightly and ignores none that this one does not. The gradient of an embedding, say,
// faults only where the embedding did. Also those that hear of a failure on another rank: all_reduce_wait,
// up to the first whose start is behind all others. Requires: a sorted graph.
std::set<const ir::Node*> NodesThatMayFaultFirst(const ir::Graph& graph);

}  // namespace halftone::passes
