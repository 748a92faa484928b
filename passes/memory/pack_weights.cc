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

// Whether `v` has the same elements in every step, until somebody else writes a variable.
bool Stays(ir::Value v, bool casts_are_kept, const std::unordered_set<std::string>& written) {
  const ir::Node* node = v.node;
  while (IsStorageAlias(*node)) node = node->input(0).node;
  if (casts_are_kept && MayBeKept(*node)) node = node->input(0).node;
  if (IsOp(*node, "variable")) return !written.contains(node->attrs().GetString("name"));
  return IsOp(*node, "constant");
}

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
    const std::unordered_set<std::string> written = WrittenVariables(graph);
    bool changed = !markers.empty();
    for (const auto& node : graph.nodes()) {
      if (!node->attrs().Has("packed")) continue;
      const bool packed = wanted && Pays(*node) &&
                          Stays(node->input(1), context.target->KeepsLowWeights(), written);
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
