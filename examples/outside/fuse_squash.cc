#include "fuse_squash.h"

#include "halftone/graph/ir/builder.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace ir = halftone::ir;
namespace passes = halftone::passes;
using halftone::DType;

namespace outside {
namespace {

class FuseSquash : public passes::Pass {
 public:
  const char* name() const override { return "fuse-squash"; }
  absl::StatusOr<bool> Run(ir::Graph& graph, passes::PassContext& context) override {
    passes::Replacements replacements;
    for (ir::Node* node : passes::Snapshot(graph)) {
      replacements.Update(*node);
      const ir::Value x = OperandOfSquash(*node);
      if (!x.valid()) continue;
      // The new node says where the user wrote the old one, and which pass made it.
      ir::Builder b = passes::BuilderLike(*node, name());
      const ir::Expr y = b.Op("squash", {b.Wrap(x)});
      HT_RETURN_IF_ERROR(b.status());
      replacements.Replace(node->output(), y.value());
      ++context.stats["fused"];
    }
    replacements.Finish(graph);
    // Nodes that nobody reads any more are removed by the passes that follow.
    return context.stats["fused"] > 0;
  }

 private:
  // x if `node` is x / (|x| + 1); else an invalid value.
  static ir::Value OperandOfSquash(const ir::Node& node) {
    if (!passes::IsOp(node, "div") || node.output_type().dtype != DType::kF32) return {};
    const ir::Value x = node.input(0);
    const ir::Node& sum = *node.input(1).node;
    if (!passes::IsOp(sum, "add") || !passes::IsSplat(sum.input(1), 1)) return {};
    const ir::Node& magnitude = *sum.input(0).node;
    const bool fits = passes::IsOp(magnitude, "abs") && magnitude.input(0) == x;
    return fits ? x : ir::Value();
  }
};

}  // namespace

std::shared_ptr<passes::Pass> MakeFuseSquash() { return std::make_shared<FuseSquash>(); }

}  // namespace outside
