#include "halftone/passes/amp/trim_amp_islands.h"

#include "halftone/passes/amp/apply_decisions.h"
#include "halftone/passes/amp/island_cost.h"
#include "halftone/passes/amp/quantise_matmuls.h"
#include "halftone/passes/amp/verify_amp_dtypes.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class TrimAmpIslands : public Pass {
 public:
  const char* name() const override { return "trim-amp-islands"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    ir::Node* marker = FindMarker(graph, "amp");
    if (marker == nullptr) return false;
    const amp::Policy policy = amp::Policy::FromMarker(*marker);
    if (policy.trim) HT_RETURN_IF_ERROR(Trim(graph, policy, context));
    graph.Remove({marker});
    if (IsF8(*policy.dtype)) {
      ir::Builder builder(&graph);
      if (builder.Root(kF8Marker, {}) == nullptr) return builder.status();
    }
    return true;
  }

 private:
  static absl::Status Trim(ir::Graph& graph, const amp::Policy& policy, PassContext& context) {
    HT_ASSIGN_OR_RETURN(auto classes, amp::ClassifyNodes(graph, policy, policy.low()));
    const AmpGraph view(graph, classes);
    std::vector<std::pair<int, std::string>> trimmed;
    for (const std::vector<int>& island : FindIslands(view)) {
      ++context.stats["islands"];
      const IslandCost cost = CostOfIsland(view, island);
      if (cost.pays()) continue;
      ++context.stats["trimmed_islands"];
      const std::string why =
          Concat("f32: trimmed: in ", Name(policy.low()), " casts would move ", cost.low_casts,
                 " bytes instead of ", cost.f32_casts, " to save ", cost.saved);
      for (int v : island) trimmed.emplace_back(v, why);
    }
    if (trimmed.empty()) return absl::OkStatus();
    for (const auto& [v, why] : trimmed) {
      view[v].node->amp.dtype = DType::kF32;
      view[v].node->amp.reason = why;
      ++context.stats["trimmed_nodes"];
    }
    TurnObserversBack(view);
    HT_RETURN_IF_ERROR(ApplyDecisions(graph, policy.low_outputs).status());
    return VerifyAmpDTypes(graph);
  }

  // An observer that no longer finds 16-bit inputs must not cause casts.
  static void TurnObserversBack(const AmpGraph& view) {
    for (int v = 0; v < view.size(); ++v) {
      ir::AmpDecision& amp = view[v].node->amp;
      if (view[v].role != AmpRole::kObserver || !IsLow(amp.dtype)) continue;
      for (int p : view.MainProducers(v)) {
        if (p < 0 || IsConstant(*view[p].node) || IsLow(view[p].node->amp.dtype)) continue;
        amp.dtype = DType::kF32;
        amp.reason = Concat("f32: reads ", view.name(p), " as it is");
      }
    }
  }
};

}  // namespace

std::unique_ptr<Pass> MakeTrimAmpIslands() { return std::make_unique<TrimAmpIslands>(); }

}  // namespace halftone::passes
