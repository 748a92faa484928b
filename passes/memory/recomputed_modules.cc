#include "halftone/passes/memory/recomputed_modules.h"

#include <algorithm>
#include <vector>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/rewrite/graph_phase.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Whether each value may be left out of memory after its call: nobody outside reads it before the
// backward pass.
std::vector<bool> InnerValues(const ir::Graph& graph, const ValueLives& lives) {
  std::vector<bool> inner;
  for (const ValueLife& life : lives.lives()) {
    inner.push_back(life.repeatable && !life.value.node->recompute.empty() &&
                    life.turn < lives.end());
  }
  const std::vector<Phase> phases = PhasesOf(graph);
  for (int p = 0; p < lives.end(); ++p) {
    const ir::Node& node = *graph.nodes()[p];
    if (IsStorageAlias(node) || phases[p] == Phase::kBackward) continue;
    for (const ir::Value& v : node.inputs()) {
      const int read = lives.Of(v);
      if (lives[read].value.node->recompute != node.recompute) inner[read] = false;
    }
  }
  return inner;
}

}  // namespace

Repeats RepeatsOfModules(const ir::Graph& graph, const ValueLives& lives) {
  const std::vector<bool> inner = InnerValues(graph, lives);
  // From when on each is read anew; the end: not at all. Readers come before what they read.
  std::vector<int> from(static_cast<size_t>(lives.size()), lives.end());
  Repeats repeats;
  for (int i = lives.size() - 1; i >= 0; --i) {
    if (!inner[i]) continue;
    const ValueLife& life = lives[i];
    if (life.again >= 0) from[i] = std::min(from[i], life.again);
    if (from[i] == lives.end()) continue;
    const ir::Node& node = *life.value.node;
    repeats[{node.id(), life.value.index}] = {from[i], node.recompute};
    for (const ir::Value& v : node.inputs()) {
      const int operand = lives.Of(v);
      if (lives[operand].value.node->recompute == node.recompute) {
        from[operand] = std::min(from[operand], from[i]);
      }
    }
  }
  return repeats;
}

}  // namespace halftone::passes
