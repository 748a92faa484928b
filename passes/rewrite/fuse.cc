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

// A group as a body: inputs in the order in which its text names them.
struct Written {
  std::unordered_set<const ir::Node*> members;
  std::vector<ir::Value> inputs;
  std::vector<ops::FusedStep> steps;  // of operands, ~i is step i

  // Appends the steps of `node` and of what it reads; the depth is at most the size of a group.
  void Write(const ir::Node& node) {
    ops::FusedStep step{&node.op(), {}, node.attrs()};
    for (const ir::Value& input : node.inputs()) {
      if (members.contains(input.node)) {
        Write(*input.node);
        step.operands.push_back(~(static_cast<int>(steps.size()) - 1));
        continue;
      }
      const auto found = std::find(inputs.begin(), inputs.end(), input);
      step.operands.push_back(static_cast<int>(found - inputs.begin()));
      if (found == inputs.end()) inputs.push_back(input);
    }
    steps.push_back(std::move(step));
  }
};

class Fuse : public Pass {
 public:
  const char* name() const override { return "fuse"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, "no_fusion");
    graph.Remove(markers);
    if (!markers.empty()) return true;
    if (!context.target->FusesElementwise()) return false;
    const Fusion fusion = FindFusion(graph, *context.target);
    context.stats["kept_apart"] += static_cast<int64_t>(fusion.apart.size());
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
    const ir::Node& result = *group.nodes.back();
    Written written{{group.nodes.begin(), group.nodes.end()}, {}, {}};
    written.Write(result);
    std::vector<ops::FusedStep> steps = std::move(written.steps);
    const auto count = static_cast<int>(written.inputs.size());
    // Inputs are counted now.
    for (ops::FusedStep& step : steps) {
      for (int& operand : step.operands) operand = operand < 0 ? count + ~operand : operand;
    }
    ir::Builder b = BuilderLike(result, "fuse");
    std::vector<ir::Expr> operands;
    for (const ir::Value& input : written.inputs) {
      operands.push_back(b.Wrap(replacements.Current(input)));
    }
    const ir::Expr fused =
        b.Op("fused", operands, {{"body", ops::FusedBody(count, std::move(steps)).ToString()}});
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

void ForbidFusion(ir::Graph& graph) { ir::Builder(&graph).Root("no_fusion", {}); }

}  // namespace halftone::passes
