// Verifier of the invariants listed in graph.h.
#pragma once

#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

// Checks order, types, names, attributes, commits, layouts. Error: Internal naming the node and the
// broken invariant. Files from outside are verified after reading, so this never ends the program.
absl::Status Verify(const Graph& graph);

}  // namespace halftone::ir
