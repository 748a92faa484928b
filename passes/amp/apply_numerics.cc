#include "halftone/passes/amp/apply_numerics.h"

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class ApplyNumerics : public Pass {
 public:
  const char* name() const override { return "apply-numerics"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, "numerics");
    if (markers.empty()) return false;
    if (markers.size() > 1) {
      return InvalidArgument(markers[1]->Label(), ": a second numerics marker, beside ",
                             markers[0]->Label());
    }
    const bool tf32 = markers[0]->attrs().GetBool("allow_tf32");
    const bool deterministic = markers[0]->attrs().GetBool("deterministic");
    const bool low = markers[0]->attrs().GetBool("low_weight_gradients");
    graph.Remove(markers);
    for (const auto& node : graph.nodes()) {
      if (tf32 && node->attrs().Has("tf32") && node->input_type(0).dtype == DType::kF32) {
        node->mutable_attrs().Set("tf32", true);
        ++context.stats["tf32"];
      }
      if (!deterministic && node->attrs().Has("deterministic")) {
        node->mutable_attrs().Set("deterministic", false);
        ++context.stats["nondeterministic"];
      }
      if (low && node->attrs().Has("low_result") && IsLow(node->output_type().dtype)) {
        node->mutable_attrs().Set("low_result", true);
        ++context.stats["low"];
      }
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeApplyNumerics() { return std::make_unique<ApplyNumerics>(); }

}  // namespace halftone::passes
