// A graph as a Graphviz drawing: `halftone_dump FILE --format dot | dot -Tsvg`.
#pragma once

#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

// Nodes are boxes grouped by module scope and coloured by NodeKind: 16-bit nodes orange, casts
// yellow, f32 nodes blue, others grey or white; state is rounded. Edges carry the type of the
// value.
std::string ToDot(const ir::Graph& graph);

}  // namespace halftone::tools
