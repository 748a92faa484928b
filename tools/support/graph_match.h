// Which node of one graph is which node of another.
#pragma once

#include <map>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

struct GraphMatch {
  std::map<const ir::Node*, const ir::Node*> a_to_b;
  std::map<const ir::Node*, const ir::Node*> b_to_a;
};

// Pairs, in this order of preference:
//  1. nodes that compute the same from the same: op, attributes, and all that they are computed
//     from; of several, those of one name first;
//  2. nodes with the same name and op;
//  3. nodes with the same op whose operands are paired, and which have any.
// So a node inserted before another with the same stem does not shift the names of all that follow.
// Requires: sorted graphs.
GraphMatch MatchNodes(const ir::Graph& a, const ir::Graph& b);

}  // namespace halftone::tools
