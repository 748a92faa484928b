#include "halftone/passes/memory/rematerialise.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "halftone/passes/memory/budget_search.h"
#include "halftone/passes/memory/cheap_values.h"
#include "halftone/passes/memory/largest_node.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/plan_judge.h"
#include "halftone/passes/memory/recomputation.h"
#include "halftone/passes/memory/recomputed_modules.h"
#include "halftone/passes/memory/value_lives.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Targets that are tried first, each lower by what the plan took more than the budget.
constexpr int kDirectTries = 5;
// Then all of these shares of the peak.
constexpr int kShares = 20;

class BudgetMeeting {
 public:
  BudgetMeeting(const ir::Graph& graph, const ir::Target& target, int64_t budget)
      : graph_(graph), target_(target), budget_(budget), judge_(target) {}

  // What to repeat. Error: ResourceExhausted.
  absl::StatusOr<Repeats> Run() {
    const std::unique_ptr<ir::Graph> as_it_is = graph_.Clone();
    HT_ASSIGN_OR_RETURN(const MemoryPlan plan, judge_.Plan(*as_it_is));
    arena_before_ = arena_after_ = smallest_ = plan.arena_bytes;
    if (plan.arena_bytes <= budget_) return Repeats();
    const ValueLives lives(graph_, target_.KeepsLowWeights());
    BudgetSearch search(graph_, lives, plan);
    HT_RETURN_IF_ERROR(TryNearBudget(search));
    if (!chosen_.has_value()) HT_RETURN_IF_ERROR(TryShares(search));
    if (chosen_.has_value()) {
      for (auto& [value, repeat] : chosen_->repeats) repeat.why = "memory_budget: " + repeat.why;
      return std::move(chosen_->repeats);
    }
    const LargestNode largest = FindLargestNode(graph_, lives, plan);
    return absl::ResourceExhaustedError(
        Concat("memory_budget: ", budget_, " bytes; the step takes ", arena_before_,
               ", and no less than ", smallest_, " with what can be computed again",
               largest.node == nullptr
                   ? std::string()
                   : Concat("; ", largest.node->Label(), " alone takes ", largest.bytes)));
  }

  int64_t arena_before() const { return arena_before_; }
  int64_t arena_after() const { return arena_after_; }

 private:
  // Counted bytes and the arena differ by gaps, and by operands that are written over.
  absl::Status TryNearBudget(BudgetSearch& search) {
    int64_t target = budget_ - (arena_before_ - search.peak_bytes());
    for (int i = 0; i < kDirectTries && target > 0 && !chosen_.has_value(); ++i) {
      HT_ASSIGN_OR_RETURN(const int64_t arena, Try(search, target));
      target -= std::max(arena - budget_, target / 64 + 1);
    }
    return absl::OkStatus();
  }

  // Whatever the budget, so that the smallest arena found is one that can be asked for.
  absl::Status TryShares(BudgetSearch& search) {
    for (int share = kShares - 1; share > 0; --share) {
      HT_RETURN_IF_ERROR(Try(search, search.peak_bytes() / kShares * share).status());
    }
    return absl::OkStatus();
  }

  // Plans what the search finds for a target; chosen if it meets the budget with the least effort.
  absl::StatusOr<int64_t> Try(BudgetSearch& search, int64_t target) {
    BudgetSearch::Result found = search.Run(target);
    const std::unique_ptr<ir::Graph> tried = graph_.Clone();
    HT_RETURN_IF_ERROR(RepeatValues(*tried, found.repeats));
    HT_ASSIGN_OR_RETURN(const MemoryPlan plan, judge_.Plan(*tried));
    smallest_ = std::min(smallest_, plan.arena_bytes);
    if (plan.arena_bytes <= budget_ && (!chosen_.has_value() || found.effort < chosen_->effort)) {
      arena_after_ = plan.arena_bytes;
      chosen_ = std::move(found);
    }
    return plan.arena_bytes;
  }

  const ir::Graph& graph_;
  const ir::Target& target_;
  const int64_t budget_;
  PlanJudge judge_;
  std::optional<BudgetSearch::Result> chosen_;
  int64_t arena_before_ = 0, arena_after_ = 0;
  int64_t smallest_ = 0;
};

class Rematerialise : public Pass {
 public:
  const char* name() const override { return kRematerialise; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> budgets = FindMarkers(graph, "memory_budget");
    if (budgets.size() > 1) {
      return InvalidArgument(budgets[1]->Label(), ": a second memory_budget marker, beside ",
                             budgets[0]->Label());
    }
    const std::vector<ir::Node*> holds = FindMarkers(graph, "hold_cheap_values");
    const int64_t budget = budgets.empty() ? 0 : budgets[0]->attrs().GetInt("bytes");
    const bool was_through = Repeated(graph) > 0;
    graph.Remove(budgets);
    graph.Remove(holds);
    bool changed = !budgets.empty() || !holds.empty();
    if (AsksForRepeats(graph)) {
      const Repeats of_modules =
          RepeatsOfModules(graph, ValueLives(graph, context.target->KeepsLowWeights()));
      HT_RETURN_IF_ERROR(RepeatValues(graph, of_modules));
      changed = changed || !of_modules.empty();
    }
    if (budget > 0) {
      BudgetMeeting meeting(graph, *context.target, budget);
      HT_ASSIGN_OR_RETURN(const Repeats repeats, meeting.Run());
      HT_RETURN_IF_ERROR(RepeatValues(graph, repeats));
      AddArena(context, meeting.arena_before(), meeting.arena_after());
    } else if (holds.empty() && !was_through) {
      HT_ASSIGN_OR_RETURN(const CheapValues cheap, FindCheapValues(graph, *context.target));
      HT_RETURN_IF_ERROR(RepeatValues(graph, cheap.repeats));
      if (!cheap.repeats.empty()) AddArena(context, cheap.arena_before, cheap.arena_after);
      changed = changed || !cheap.repeats.empty();
    }
    context.stats["repeated"] += Repeated(graph);
    return changed;
  }

 private:
  static bool AsksForRepeats(const ir::Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [](const auto& node) { return !node->recompute.empty(); });
  }

  static int64_t Repeated(const ir::Graph& graph) {
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [](const auto& node) { return IsRecomputed(*node); });
  }

  static void AddArena(PassContext& context, int64_t before, int64_t after) {
    context.stats["arena_before"] += before;
    context.stats["arena_after"] += after;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeRematerialise() { return std::make_unique<Rematerialise>(); }

}  // namespace halftone::passes
