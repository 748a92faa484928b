// layer_norm and layer_norm_grad.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

// x's extents split into those that index the rows and those that are normalised.
struct LayerNormSplit {
  Shape rows, normalized;
};

absl::StatusOr<LayerNormSplit> SplitLayerNorm(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 1, kMaxRank));
  const Shape& x = ctx.inputs[0].shape;
  const int64_t count = ctx.attrs.GetInt("axes_count");
  if (count < 1 || count > x.rank()) {
    return InvalidArgument(ctx.op, ": axes_count is ", count, " for x ", ctx.inputs[0].ToString(),
                           "; expected 1..", x.rank());
  }
  const int split = x.rank() - static_cast<int>(count);
  return LayerNormSplit{Shape(x.dims().subspan(0, split)), Shape(x.dims().subspan(split))};
}

Types InferLayerNorm(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const LayerNormSplit split, SplitLayerNorm(ctx));
  const double eps = ctx.attrs.GetFloat("eps");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "eps", eps >= 0, "0 or more"));
  const ir::ValueType& x = ctx.inputs[0];
  const DType wide = WideDType(x.dtype);
  const std::string why = Concat("normalised extents of x ", x.ToString());
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "gamma", wide, split.normalized, why));
  HT_RETURN_IF_ERROR(CheckType(ctx, 2, "beta", wide, split.normalized, why));
  const ir::ValueType stat{wide, split.rows};
  return std::vector<ir::ValueType>{{x.dtype, x.shape}, stat, stat};
}

Types InferLayerNormGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const LayerNormSplit split, SplitLayerNorm(ctx));
  const ir::ValueType& x = ctx.inputs[0];
  const DType wide = WideDType(x.dtype);
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "dy", x.dtype, x.shape, "type of x"));
  HT_RETURN_IF_ERROR(CheckType(ctx, 2, "gamma", wide, split.normalized,
                               Concat("normalised extents of x ", x.ToString())));
  HT_RETURN_IF_ERROR(CheckType(ctx, 3, "mean", wide, split.rows, "rows of x"));
  HT_RETURN_IF_ERROR(CheckType(ctx, 4, "rstd", wide, split.rows, "rows of x"));
  const ir::ValueType parameter{wide, split.normalized};
  return std::vector<ir::ValueType>{{x.dtype, x.shape}, parameter, parameter};
}

// The first `count` axes, or the last `count`.
Ints LeadingAxes(int count) { return AllAxes(count); }
Ints TrailingAxes(int rank, int64_t count) {
  Ints axes;
  for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
  return axes;
}

// A statistic of the rows as [rows..., 1...] of x's rank.
Expr PerRow(Expr v, int rank) {
  if (!v.valid()) return v;
  Ints dims(v.shape().dims().begin(), v.shape().dims().end());
  dims.resize(rank, 1);
  return ReshapeTo(v, Shape(dims));
}

std::vector<Expr> DecomposeLayerNorm(ir::Builder&, const std::vector<Expr>& in,
                                     const ir::Attributes& attrs) {
  const Expr x = Widened(in[0]);
  const int rank = in[0].shape().rank();
  const Ints axes = TrailingAxes(rank, attrs.GetInt("axes_count"));
  const Expr mean = Mean(x, axes);
  const Expr centred = x - PerRow(mean, rank);
  const Expr var = Mean(centred * centred, axes);
  const Expr rstd = 1.0 / Sqrt(var + attrs.GetFloat("eps"));
  const Expr y = centred * PerRow(rstd, rank) * in[1] + in[2];
  return {CastTo(y, in[0].dtype()), mean, rstd};
}

std::vector<Expr> DecomposeLayerNormGrad(ir::Builder&, const std::vector<Expr>& in,
                                         const ir::Attributes& attrs) {
  const Expr x = Widened(in[0]), dy = Widened(in[1]);
  const int rank = in[0].shape().rank();
  const int64_t count = attrs.GetInt("axes_count");
  const Ints trailing = TrailingAxes(rank, count);
  const Ints leading = LeadingAxes(rank - static_cast<int>(count));
  const Expr rstd = PerRow(in[4], rank);
  const Expr xhat = (x - PerRow(in[3], rank)) * rstd;
  const Expr g = dy * in[2];
  const Expr dx = rstd * (g - Mean(g, trailing, true) - xhat * Mean(g * xhat, trailing, true));
  return {CastTo(dx, in[0].dtype()), Sum(dy * xhat, leading), Sum(dy, leading)};
}

// What arrives at the statistics is of second derivatives: layer_norm_grad reads them.
Expr GradientOfRowMoments(ir::GradContext& ctx) {
  const Expr x = Widened(ctx.in(0));
  const int rank = ctx.in(0).shape().rank();
  const double n = static_cast<double>(ctx.in(1).shape().num_elements());
  const Expr rstd = PerRow(ctx.out(2), rank);
  const Expr centred = x - PerRow(ctx.out(1), rank);
  return (PerRow(ctx.dy(1), rank) - PerRow(ctx.dy(2), rank) * rstd * rstd * rstd * centred) / n;
}

void LayerNormGradient(ir::GradContext& ctx) {
  std::vector<Expr> d =
      ctx.b.Make("layer_norm_grad", {ctx.in(0), ctx.dy(0), ctx.in(1), ctx.out(1), ctx.out(2)},
                 {{"axes_count", ctx.attrs().GetInt("axes_count")}});
  if (ctx.need(0) && (ctx.has_dy(1) || ctx.has_dy(2))) {
    d[0] = d[0] + CastTo(GradientOfRowMoments(ctx), ctx.in(0).dtype());
  }
  for (int i = 0; i < 3; ++i) {
    if (ctx.need(i)) ctx.set_dx(i, d[i]);
  }
}

ir::OpRecord LayerNormRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.source =
      "Ba, Kiros, Hinton: \"Layer normalization\", https://arxiv.org/abs/1607.06450, equation 4; "
      "https://pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html";
  r.attrs = {
      {"axes_count", ir::AttrType::kInt, int64_t{1}, "how many trailing axes are normalised"}};
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kInfer;
  r.amp.reason =
      "statistics are f32 inside and the result is of order one; scale and statistics stay f32";
  r.amp.accumulates_in_f32 = true;
  r.fusion = ir::FusionClass::kReduction;
  return r;
}

}  // namespace

void Register_layer_norm(ir::OpRegistry& registry) {
  const ir::DTypeSet wide{DType::kF64, DType::kF32};

  ir::OpRecord r = LayerNormRecord("layer_norm");
  r.doc =
      "Over the last axes_count axes: y = gamma (x - mean) rstd + beta "
      "with rstd = 1 / sqrt(var + eps) and the biased variance. "
      "Shapes: x and y [rows..., normalised...], gamma and beta [normalised...], "
      "mean and rstd [rows...], f32 (f64 for f64 x).";
  r.inputs = {{"x", ir::kFloats, "[rows..., normalised...]"},
              {"gamma", wide, "[normalised...]"},
              {"beta", wide, "[normalised...]"}};
  r.outputs = {{"y", "as x"}, {"mean", "[rows...]"}, {"rstd", "[rows...]"}};
  r.attrs.push_back({"eps", ir::AttrType::kFloat, 1e-5, "added to the variance"});
  r.infer = InferLayerNorm;
  r.amp.keep_f32_inputs = {1, 2};
  r.amp.keep_f32_outputs = {1, 2};
  r.in_place = {{0, 0}};
  r.cost = FlopsPerInput(7);
  r.gradient = LayerNormGradient;
  r.gradient_ops = {"layer_norm_grad", "reshape", "sub", "mul", "div", "add", "cast"};
  r.decompose = DecomposeLayerNorm;
  AddOp(registry, std::move(r));

  ir::OpRecord grad = LayerNormRecord("layer_norm_grad");
  grad.doc =
      "Gradient of layer_norm. "
      "With xhat = (x - mean) rstd, g = dy gamma and means over a row: "
      "dx = rstd (g - mean(g) - xhat mean(g xhat)); "
      "over the rows: dgamma = sum(dy xhat), dbeta = sum(dy). Shapes as layer_norm.";
  grad.inputs = {{"x", ir::kFloats, "[rows..., normalised...]"},
                 {"dy", ir::kFloats, "as x"},
                 {"gamma", wide, "[normalised...]"},
                 {"mean", wide, "[rows...]"},
                 {"rstd", wide, "[rows...]"}};
  grad.outputs = {{"dx", "as x"}, {"dgamma", "[normalised...]"}, {"dbeta", "[normalised...]"}};
  grad.infer = InferLayerNormGrad;
  grad.amp.keep_f32_inputs = {2, 3, 4};
  grad.amp.keep_f32_outputs = {1, 2};
  grad.amp.same_dtype_inputs = {0, 1};
  grad.cost = FlopsPerInput(12);
  grad.decompose = DecomposeLayerNormGrad;
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
