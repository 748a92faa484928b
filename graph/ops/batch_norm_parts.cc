// batch_norm in two: the statistics, and what they do to each element, which is elementwise and so can
// be part of a fused node. Made by the pass split-batch-norms.
#include "halftone/graph/ops/support/batch_moments.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

constexpr const char* kPartsSource = "graph/ops/batch_norm.cc";
constexpr const char* kPartsAmpReason = "made when precision is decided: statistics stay f32";

Types InferStats(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 2, 4));
  const ir::ValueType& x = ctx.inputs[0];
  const ir::ValueType stat{WideDType(x.dtype), Shape{x.shape.dim(1)}};
  const std::string why = Concat("channels of x ", x.ToString());
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "gamma", stat.dtype, stat.shape, why));
  HT_RETURN_IF_ERROR(CheckType(ctx, 2, "running_mean", stat.dtype, stat.shape, why));
  HT_RETURN_IF_ERROR(CheckType(ctx, 3, "running_var", stat.dtype, stat.shape, why));
  HT_RETURN_IF_ERROR(CheckBatchStatistics(ctx));
  return std::vector<ir::ValueType>(6, stat);
}

std::vector<Expr> DecomposeStats(ir::Builder&, const std::vector<Expr>& in,
                                 const ir::Attributes& attrs) {
  const BatchMoments batch = MomentsOf(Widened(in[0]), in[2], in[3], attrs);
  return {batch.mean,          batch.invstd, batch.new_mean, batch.new_var, batch.mean - batch.mean,
          batch.invstd * in[1]};
}

Types InferApply(const InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  const DType wide = WideDType(x.dtype);
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    const ir::ValueType& number = ctx.inputs[i];
    if (number.dtype != wide || !BroadcastsTo(number.shape, x.shape) ||
        number.shape != ctx.inputs[1].shape) {
      return InvalidArgument(ctx.op, ": input ", i, " is ", number, "; expected ", Name(wide),
                             " of one shape that broadcasts to that of x ", x);
    }
  }
  return OneType(x.dtype, x.shape, x.layout);
}

std::vector<Expr> DecomposeApply(ir::Builder&, const std::vector<Expr>& in, const ir::Attributes&) {
  const Expr y = (Widened(in[0]) - in[1] - in[2]) * in[3] + in[4];
  return {CastTo(y, in[0].dtype())};
}

}  // namespace

void Register_batch_norm_parts(ir::OpRegistry& registry) {
  const ir::DTypeSet wide{DType::kF64, DType::kF32};
  ir::OpRecord stats;
  stats.name = "batch_norm_stats";
  stats.doc =
      "What batch_norm computes of x [N,C,...] per channel (axis 1): the outputs of that name, and "
      "for batch_norm_apply what save_mean lacks of the mean, and gamma save_invstd. "
      "All [C], f32 (f64 for f64 x).";
  stats.source = kPartsSource;
  stats.inputs = {{"x", ir::kFloats, "[N,C,...]"},
                  {"gamma", wide, "[C]"},
                  {"running_mean", wide, "[C]"},
                  {"running_var", wide, "[C]"}};
  stats.outputs = {{"save_mean", "rounded"},
                   {"save_invstd", "1 / sqrt(var + eps)"},
                   {"new_mean", ""},
                   {"new_var", ""},
                   {"low", "mean - save_mean"},
                   {"scale", "gamma save_invstd"}};
  stats.attrs = {Optional("momentum", 0.1, "the weight of this batch"),
                 Optional("eps", 1e-5, "added to the variance")};
  stats.infer = InferStats;
  stats.amp = Untouched(kPartsAmpReason, {0, 1, 2, 3});
  stats.fusion = ir::FusionClass::kReduction;
  stats.layout.kind = ir::LayoutClass::kChannelsLast;
  stats.layout.channels_last_inputs = {0};
  stats.layout.channel_blocks = true;
  stats.in_place = {{2, 2}, {3, 3}};
  stats.cost = FlopsPerInput(5);
  stats.decompose = DecomposeStats;
  AddOp(registry, std::move(stats));

  ir::OpRecord apply = ElementwiseOp(
      "batch_norm_apply", {"x", "mean", "low", "scale", "shift"}, ir::kFloats,
      "y = (x - mean - low) scale + shift in f32 (f64 for f64 x), rounded once to the dtype of x. "
      "The numbers have one shape, which broadcasts to that of x: [1,C,1,1], or all of it",
      kPartsSource, Untouched(kPartsAmpReason, {0, 1, 2, 3, 4}));
  for (size_t i = 1; i < apply.inputs.size(); ++i) apply.inputs[i].dtypes = wide;
  apply.in_place = {{0, 0}};
  apply.infer = InferApply;
  apply.cost = FlopsPerOutput(4);
  apply.decompose = DecomposeApply;
  AddOp(registry, std::move(apply));
}

}  // namespace halftone::ops
