#include "halftone/passes/memory/largest_node.h"

#include <algorithm>
#include <set>

#include "halftone/graph/ir/in_place.h"

namespace halftone::passes {
namespace {

bool MayBeOverOperand(const ir::Node& node, int output) {
  const std::vector<ir::InPlacePair>& pairs = node.op().in_place;
  return std::any_of(pairs.begin(), pairs.end(), [&](const ir::InPlacePair& pair) {
    return pair.output == output && pair.input < node.num_inputs() &&
           ir::FitsInPlace(node.input_type(pair.input), node.output_type(output));
  });
}

}  // namespace

LargestNode FindLargestNode(const ir::Graph& graph, const ValueLives& lives,
                            const MemoryPlan& plan) {
  LargestNode largest;
  for (size_t p = 0; p < graph.nodes().size(); ++p) {
    const ir::Node& node = *graph.nodes()[p];
    if (!plan.nodes[p].runs) continue;
    std::set<int> there;
    for (const ir::Value& v : node.inputs()) there.insert(lives.Of(v));
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!MayBeOverOperand(node, i)) there.insert(lives.Of(node.output(i)));
    }
    int64_t bytes = plan.nodes[p].workspace_bytes;
    for (const int life : there) {
      const Slot& slot = SlotOf(lives[life], plan);
      if (slot.space == Slot::Space::kArena) bytes += slot.bytes;
    }
    if (bytes > largest.bytes) largest = {&node, bytes};
  }
  return largest;
}

}  // namespace halftone::passes
