#include "halftone/passes/memory/cheap_values.h"

#include <memory>
#include <utility>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/budget_search.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/plan_judge.h"
#include "halftone/passes/memory/value_lives.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Targets that are tried are so many parts of the peak as it is.
constexpr int kPeakParts = 64;

// An upper bound of what can be saved, which needs no plan.
int64_t CheapBytes(const ValueLives& lives, double most_effort_per_byte) {
  int64_t bytes = 0;
  for (const ValueLife& life : lives.lives()) {
    if (!life.repeatable || life.again <= life.turn + 1) continue;
    const double most = most_effort_per_byte * static_cast<double>(life.bytes);
    if (Effort(*life.value.node) <= most) bytes += life.bytes;
  }
  return bytes;
}

double EffortOf(const ir::Graph& graph) {
  double effort = 0;
  for (const auto& node : graph.nodes()) {
    if (!IsSource(*node) && !IsStorageAlias(*node) && !node->op().has_side_effect) {
      effort += Effort(*node);
    }
  }
  return effort;
}

// The lowest of the targets that cheap values bring the peak down to, or the first that is missed
// if it is lower still.
BudgetSearch::Result LowerPeak(BudgetSearch& search, const CheapLimits& limits,
                               double most_effort) {
  BudgetSearch::Result best;
  best.peak_bytes = search.peak_bytes();
  for (int parts = kPeakParts - 1; parts > 0; --parts) {
    const int64_t target = search.peak_bytes() / kPeakParts * parts;
    BudgetSearch::Result found = search.Run(target, limits.most_effort_per_byte);
    if (found.effort > most_effort) break;
    const bool met = found.peak_bytes <= target;
    if (found.peak_bytes < best.peak_bytes) best = std::move(found);
    if (!met) break;
  }
  return best;
}

}  // namespace

absl::StatusOr<CheapValues> FindCheapValues(const ir::Graph& graph, const ir::Target& target,
                                            const CheapLimits& limits) {
  CheapValues cheap;
  const ValueLives lives(graph, target.KeepsLowWeights());
  if (CheapBytes(lives, limits.most_effort_per_byte) < limits.least_bytes) return cheap;
  PlanJudge judge(target);
  const std::unique_ptr<ir::Graph> as_it_is = graph.Clone();
  HT_ASSIGN_OR_RETURN(const MemoryPlan plan, judge.Plan(*as_it_is));
  cheap.arena_before = cheap.arena_after = plan.arena_bytes;

  BudgetSearch search(graph, lives, plan);
  BudgetSearch::Result found = LowerPeak(search, limits, limits.most_of_step * EffortOf(graph));
  if (found.repeats.empty()) return cheap;
  const std::unique_ptr<ir::Graph> tried = graph.Clone();
  HT_RETURN_IF_ERROR(RepeatValues(*tried, found.repeats));
  HT_ASSIGN_OR_RETURN(const MemoryPlan less, judge.Plan(*tried));

  const int64_t saved = plan.arena_bytes - less.arena_bytes;
  const double share = static_cast<double>(saved) / static_cast<double>(plan.arena_bytes);
  if (saved < limits.least_bytes || share < limits.least_of_arena) return cheap;
  cheap.arena_after = less.arena_bytes;
  for (auto& [value, repeat] : found.repeats) repeat.why = "cheap: " + repeat.why;
  cheap.repeats = std::move(found.repeats);
  return cheap;
}

}  // namespace halftone::passes
