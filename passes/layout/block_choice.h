// Which nodes have their images in blocks of channels: see block_channels.h.
#pragma once

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Every node that can starts in blocks; single ones and then connected groups leave while that lowers the
// cost: bytes relaid, less what convolutions gain.
class BlockChoice {
 public:
  // Requires: a graph with layouts assigned, which outlives this and stays as it is.
  explicit BlockChoice(const ir::Graph& graph);

  bool InBlocks(const ir::Node& node) const { return in_blocks_.contains(&node); }
  ir::Layout Given(ir::Value v) const;
  ir::Layout Asked(const ir::Node& node, int port) const;

 private:
  void Count(const ir::Node& reader, int times);
  double CostOf(ir::Value v) const;
  double CostAround(const std::vector<const ir::Node*>& nodes) const;
  void Flip(const ir::Node* node);
  bool LeavesAlone(const ir::Node* node);
  std::vector<const ir::Node*> GroupOf(const ir::Node* start) const;

  const ir::UseMap uses_;
  std::set<const ir::Node*> in_blocks_;
  // By value, how often each layout is asked for, so that a value of many readers costs no more to judge.
  std::map<std::pair<int64_t, int>, std::array<int, 3>> asked_;
};

}  // namespace halftone::passes
