// What an island of 16-bit nodes saves and what its casts cost.
#pragma once

#include <set>
#include <vector>

#include "halftone/passes/amp/amp_graph.h"

namespace halftone::passes {

struct IslandCost {
  double saved = 0;      // bytes that the ops move less in 16 bit
  double low_casts = 0;  // bytes that casts move while the island is 16-bit
  double f32_casts = 0;  // bytes that casts would move if it were f32
  bool pays() const { return low_casts <= f32_casts + saved; }
};

// Bytes that casting a value of this type between f32 and 16 bit moves, read and written.
double CastBytes(const ir::ValueType& type);

// Bytes that a 16-bit node moves less than in f32: its op's cost, as far as it falls to main ports.
double SavedBytes(const ir::Node& node);

// Connected sets of 16-bit vertices of class infer or clear that the user did not force, each
// sorted; in the order of their smallest vertex.
std::vector<std::vector<int>> FindIslands(const AmpGraph& graph);

IslandCost CostOfIsland(const AmpGraph& graph, const std::vector<int>& island);

}  // namespace halftone::passes
