#include "halftone/passes/rewrite/split_batch_norms.h"

#include <utility>
#include <vector>

#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/passes/rewrite/fusion_groups.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// [C] as [1,C,1,1] of x's rank.
Shape PerChannel(const ir::ValueType& x) {
  std::vector<int64_t> extents(static_cast<size_t>(x.shape.rank()), 1);
  extents[1] = x.shape[1];
  return Shape(extents);
}

class SplitBatchNorms : public Pass {
 public:
  const char* name() const override { return "split-batch-norms"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    // Under `no_fusion`, which fuse removes, there is nobody to split for.
    if (!context.target->FusesElementwise() || FindMarker(graph, "no_fusion") != nullptr) {
      return false;
    }
    const ir::UseMap uses(graph);
    std::vector<ir::Node*> gone;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsOp(*node, "batch_norm") || !CanFuse(*node, uses, *context.target)) continue;
      HT_RETURN_IF_ERROR(Split(*node, replacements));
      gone.push_back(node);
      ++context.stats["split"];
    }
    replacements.Finish(graph);
    graph.Remove(gone);
    HT_RETURN_IF_ERROR(graph.Sort());
    return !gone.empty();
  }

 private:
  static bool CanFuse(const ir::Node& node, const ir::UseMap& uses, const ir::Target& target) {
    const ir::ValueType& y = node.output_type();
    const auto& readers = uses.uses(node.output());
    if (readers.size() != 1 || uses.is_output(node.output())) return false;
    const ir::Node& reader = *readers[0].node;
    if (!ops::WhyNotFusable(reader.op()).empty() || reader.output_type().shape != y.shape ||
        reader.output_type().layout != y.layout || y.num_elements() < kLeastFusedElements) {
      return false;
    }
    const ir::ValueType number{node.input_type(1).dtype, PerChannel(y)};
    const auto access = ops::AccessOf(number, y);
    return access.has_value() && target.HasKernel("batch_norm_apply", y.dtype) &&
           target.HasKernel("batch_norm_stats", y.dtype) && node.recompute == reader.recompute;
  }

  static absl::Status Split(const ir::Node& node, Replacements& replacements) {
    ir::Builder b = BuilderLike(node, "split-batch-norms");
    const auto operand = [&](int port) { return b.Wrap(replacements.Current(node.input(port))); };
    const ir::Expr x = operand(0);
    b.NameNext(node.name() + "_stats");
    const std::vector<ir::Expr> stats =
        b.Make("batch_norm_stats", {x, operand(1), operand(3), operand(4)}, node.attrs());
    const Shape shape = PerChannel(node.output_type());
    const auto per_channel = [&](ir::Expr number) {
      return b.Op("reshape", {number},
                  {{"shape", std::vector<int64_t>(shape.dims().begin(), shape.dims().end())}});
    };
    const ir::Expr mean = per_channel(stats[0]), low = per_channel(stats[4]);
    const ir::Expr scale = per_channel(stats[5]), shift = per_channel(operand(2));
    b.NameNext(node.name());
    const ir::Expr y = b.Op("batch_norm_apply", {x, mean, low, scale, shift});
    HT_RETURN_IF_ERROR(b.status());
    for (const ir::Expr& made : {stats[0], y}) {
      made.value().node->amp = node.amp;
      made.value().node->recompute = node.recompute;
    }
    replacements.Replace(node.output(0), y.value());
    for (int i = 0; i < 4; ++i) replacements.Replace(node.output(i + 1), stats[i].value());
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSplitBatchNorms() { return std::make_unique<SplitBatchNorms>(); }

}  // namespace halftone::passes
