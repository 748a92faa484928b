#include "halftone/passes/rewrite/fuse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/passes/rewrite/fusion_groups.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class Fuse : public Pass {
 public:
  const char* name() const override { return "fuse"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, "no_fusion");
    graph.Remove(markers);
    if (!markers.empty()) return true;
    const Fusion fusion = FindFusion(graph, *context.target);
    context.stats["kept apart"] += static_cast<int64_t>(fusion.apart.size());
    if (fusion.groups.empty()) return false;
    std::vector<ir::Node*> order = Snapshot(graph), gone;
    std::unordered_map<const ir::Node*, ir::Node*> made;
    Replacements replacements;
    for (const FusionGroup& group : fusion.groups) {
      HT_ASSIGN_OR_RETURN(made[group.nodes.back()], MakeOne(group, replacements));
      for (const ir::Node* node : group.nodes) gone.push_back(node->output().node);
    }
    context.stats["groups"] += static_cast<int64_t>(fusion.groups.size());
    context.stats["nodes"] += static_cast<int64_t>(gone.size());
    replacements.Finish(graph);
    // Each runs where its result was made.
    for (ir::Node*& node : order) {
      if (const auto found = made.find(node); found != made.end()) node = found->second;
    }
    graph.Remove(gone);
    const std::unordered_set<const ir::Node*> removed(gone.begin(), gone.end());
    std::erase_if(order, [&](const ir::Node* node) { return removed.contains(node); });
    graph.Reorder(order);
    return true;
  }

 private:
  static absl::StatusOr<ir::Node*> MakeOne(const FusionGroup& group, Replacements& replacements) {
    std::vector<ir::Value> inputs;
    std::unordered_map<const ir::Node*, int> steps;
    for (const ir::Node* node : group.nodes) steps.emplace(node, static_cast<int>(steps.size()));
    for (const ir::Node* node : group.nodes) {
      for (const ir::Value& input : node->inputs()) {
        const bool is_new = std::find(inputs.begin(), inputs.end(), input) == inputs.end();
        if (is_new && !steps.contains(input.node)) inputs.push_back(input);
      }
    }
    const auto count = static_cast<int>(inputs.size());
    std::vector<ops::FusedStep> body;
    for (const ir::Node* node : group.nodes) {
      ops::FusedStep step{&node->op(), {}, node->attrs()};
      for (const ir::Value& input : node->inputs()) {
        const auto found = steps.find(input.node);
        const auto at = std::find(inputs.begin(), inputs.end(), input) - inputs.begin();
        step.operands.push_back(found == steps.end() ? static_cast<int>(at)
                                                     : count + found->second);
      }
      body.push_back(std::move(step));
    }
    const ir::Node& result = *group.nodes.back();
    ir::Builder b = BuilderLike(result, "fuse");
    std::vector<ir::Expr> operands;
    for (const ir::Value& input : inputs) operands.push_back(b.Wrap(replacements.Current(input)));
    const ir::Expr fused =
        b.Op("fused", operands, {{"body", ops::FusedBody(count, std::move(body)).ToString()}});
    HT_RETURN_IF_ERROR(b.status());
    ir::Node* const node = fused.value().node;
    node->amp = result.amp;
    node->recompute = result.recompute;
    replacements.Replace(result.output(), fused.value());
    return node;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeFuse() { return std::make_unique<Fuse>(); }

}  // namespace halftone::passes
