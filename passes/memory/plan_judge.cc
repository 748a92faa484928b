#include "halftone/passes/memory/plan_judge.h"

#include "halftone/passes/memory/group_updates.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {

absl::StatusOr<MemoryPlan> PlanJudge::Plan(ir::Graph& graph) {
  PassContext context;
  context.target = &target_;
  HT_RETURN_IF_ERROR(MakeGroupUpdates()->Run(graph, context).status());
  HT_RETURN_IF_ERROR(MakeKeepLowWeights()->Run(graph, context).status());
  return PlanMemory(graph, PlanOptionsFor(graph, StepTraitsOf(target_),
                                          [this](const ir::Node& node) { return Traits(node); }));
}

const ir::KernelTraits& PlanJudge::Traits(const ir::Node& node) {
  const std::string& name = IsRecomputed(node) ? node.provenance.from : node.name();
  const auto known = traits_.find(name);
  if (known != traits_.end()) return known->second;
  return traits_.emplace(name, target_.TraitsOf(node)).first->second;
}

}  // namespace halftone::passes
