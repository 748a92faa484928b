// What must hold for every graph that a reader accepts.
#pragma once

#include "halftone/graph/ir/graph.h"

namespace halftone::testing {

// Ends the program unless the graph is valid and text -> graph -> proto -> graph -> text is a fixed
// point.
void CheckGraph(const ir::Graph& graph);

}  // namespace halftone::testing
