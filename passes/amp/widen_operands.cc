#include "halftone/passes/amp/widen_operands.h"

#include <string>

namespace halftone::passes {
namespace {

class WidenOperands : public Pass {
 public:
  const char* name() const override { return "widen-operands"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    bool changed = false;
    for (const auto& node : graph.nodes()) {
      if (!node->attrs().Has("widened")) continue;
      const std::string before = node->attrs().GetString("widened");
      // The target's kernels are asked, which obey what stands there.
      node->mutable_attrs().Set("widened", std::string());
      const std::string why = context.target->WhyWidened(*node);
      node->mutable_attrs().Set("widened", why);
      changed = changed || why != before;
      if (!why.empty()) ++context.stats["widened"];
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeWidenOperands() { return std::make_unique<WidenOperands>(); }

}  // namespace halftone::passes
