#include "halftone/passes/memory/pack_weights.h"

#include <unordered_set>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ops/support/record.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

std::unordered_set<std::string> WrittenVariables(const ir::Graph& graph) {
  std::unordered_set<std::string> written;
  for (const ir::Node* commit : graph.commits()) {
    written.insert(commit->attrs().GetString("variable"));
  }
  return written;
}

// What stays from step to step: all weights where a graph writes nothing, as an evaluation; else those that
// nobody trains. Others may be written by the graph's other steps, or by another graph's, every time.
class Constancy {
 public:
  Constancy(const ir::Graph& graph, bool casts_are_kept)
      : written_(WrittenVariables(graph)), casts_are_kept_(casts_are_kept) {}

  bool Holds(ir::Value v) const {
    const ir::Node* node = v.node;
    while (IsStorageAlias(*node)) node = node->input(0).node;
    if (casts_are_kept_ && MayBeKept(*node)) node = node->input(0).node;
    if (!IsOp(*node, "variable")) return IsOp(*node, "constant");
    return written_.empty() || (!node->attrs().GetBool("trainable") &&
                                !written_.contains(node->attrs().GetString("name")));
  }

 private:
  std::unordered_set<std::string> written_;
  bool casts_are_kept_;
};

bool Pays(const ir::Node& node) {
  const auto elements = static_cast<double>(node.input_type(1).num_elements());
  return ir::CostOf(node).flops < 2 * elements * static_cast<double>(kPackedPositions);
}

class PackWeights : public Pass {
 public:
  const char* name() const override { return "pack-weights"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, "no_packing");
    graph.Remove(markers);
    const bool wanted = markers.empty() && context.target->PacksWeights();
    const Constancy constancy(graph, context.target->KeepsLowWeights());
    bool changed = !markers.empty();
    for (const auto& node : graph.nodes()) {
      if (!node->attrs().Has("packed")) continue;
      const bool packed = wanted && Pays(*node) && constancy.Holds(node->input(1));
      if (packed) context.stats["packed"] += 1;
      if (packed == ops::IsPacked(*node)) continue;
      node->mutable_attrs().Set("packed", packed);
      changed = true;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> MakePackWeights() { return std::make_unique<PackWeights>(); }

void ForbidPacking(ir::Graph& graph) { ir::Builder(&graph).Root("no_packing", {}); }

}  // namespace halftone::passes
