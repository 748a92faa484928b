// Which nodes `fuse` makes one, and why others stay apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"

namespace halftone::passes {

// Below so many elements a result is in the cache when it is read.
inline constexpr int64_t kLeastFusedElements = 2048;

struct FusionGroup {
  std::vector<const ir::Node*> nodes;  // in the order of the graph; the last gives the result
};

// An elementwise node that stays apart from the elementwise node that reads it.
struct KeptApart {
  const ir::Node* node;
  const ir::Node* reader;
  std::string why;
};

struct Fusion {
  std::vector<FusionGroup> groups;  // of two nodes and more, by their results
  std::vector<KeptApart> apart;
};

// A group is grown from its result towards its operands, the last of them first. An operand joins if
// the group is its only reader and stays within what a body may be. It is then computed where the
// result is: if other nodes come in between, then only if what it alone reads is no larger than
// itself, so that holding that instead costs nothing. Requires: a sorted graph.
Fusion FindFusion(const ir::Graph& graph, const ir::Target& target);

}  // namespace halftone::passes
