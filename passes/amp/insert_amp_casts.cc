#include "halftone/passes/amp/insert_amp_casts.h"

#include "halftone/passes/amp/apply_decisions.h"
#include "halftone/passes/amp/painter.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Whether a main input is 16-bit as it stands.
bool ReadsLow(const ir::Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (IsMainInput(node, i) && IsLow(node.input_type(i).dtype)) return true;
  }
  return false;
}

bool RunsLow(const ir::AmpDecision& decision) { return decision.decided && IsLow(decision.dtype); }

class InsertAmpCasts : public Pass {
 public:
  const char* name() const override { return kAmpPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    ir::Node* marker = FindMarker(graph, "amp");
    if (marker == nullptr) return false;
    const amp::Policy policy = amp::Policy::FromMarker(*marker);
    const DType low = policy.low();
    if (!IsLow(low)) {
      context.notes.push_back(
          Concat("amp: dtype ", Name(low), " is no 16-bit float type; mixed precision is off"));
      graph.Remove({marker});
      return true;
    }
    HT_ASSIGN_OR_RETURN(auto classes,
                        amp::ClassifyNodes(graph, policy, low, &context.unmatched_entries));
    AmpGraph view(graph, classes);
    Painting painting = Paint(view, ValueRanges(graph), low, *context.target);
    context.notes.insert(context.notes.end(), painting.notes.begin(), painting.notes.end());
    bool changed = false;
    for (int v = 0; v < view.size(); ++v) {
      ir::AmpDecision& decision = view[v].node->amp;
      // A decision for f32 is a note on the node; only 16-bit nodes change the graph.
      changed |= RunsLow(decision) != RunsLow(painting.decisions[v]) ||
                 decision.dtype != painting.decisions[v].dtype;
      decision = painting.decisions[v];
      changed |= ReadsLow(*view[v].node) && IsRaised(*view[v].node);
      CountDecision(view[v], context);
    }
    if (!changed) return false;
    HT_ASSIGN_OR_RETURN(int casts, ApplyDecisions(graph, policy.low_outputs));
    context.stats["casts"] += casts;
    return true;
  }

 private:
  static void CountDecision(const AmpVertex& vertex, PassContext& context) {
    if (vertex.role != AmpRole::kPaintable && vertex.role != AmpRole::kObserver) return;
    ++context.stats[IsLow(vertex.node->amp.dtype) ? "low_nodes" : "f32_nodes"];
  }
};

}  // namespace

std::unique_ptr<Pass> MakeInsertAmpCasts() { return std::make_unique<InsertAmpCasts>(); }

}  // namespace halftone::passes
