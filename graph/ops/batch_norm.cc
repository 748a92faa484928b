// batch_norm (training), batch_norm_inference and batch_norm_grad.
#include "halftone/graph/ops/support/batch_moments.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

constexpr const char* kBatchNormSource =
    "Ioffe, Szegedy: \"Batch normalization\", ICML 2015, algorithm 1; "
    "https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html";

constexpr const char* kBatchNormAmpReason =
    "statistics are f32 inside and the result is of order one; scale and statistics stay f32";

// Checks x and the per-channel inputs that follow at `ports`.
absl::Status CheckBatchNorm(const InferContext& ctx, std::initializer_list<int> ports,
                            std::initializer_list<const char*> names) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 2, 4));
  const ir::ValueType& x = ctx.inputs[0];
  const std::string why = Concat("channels of x ", x.ToString());
  const char* const* name = names.begin();
  for (int port : ports) {
    HT_RETURN_IF_ERROR(
        CheckType(ctx, port, *name++, WideDType(x.dtype), Shape{x.shape.dim(1)}, why));
  }
  return absl::OkStatus();
}

absl::Status CheckEps(const InferContext& ctx) {
  return CheckFloat(ctx, "eps", ctx.attrs.GetFloat("eps") >= 0, "0 or more");
}

Types InferBatchNorm(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(
      CheckBatchNorm(ctx, {1, 2, 3, 4}, {"gamma", "beta", "running_mean", "running_var"}));
  HT_RETURN_IF_ERROR(CheckBatchStatistics(ctx));
  const ir::ValueType& x = ctx.inputs[0];
  const ir::ValueType stat{WideDType(x.dtype), Shape{x.shape.dim(1)}};
  return std::vector<ir::ValueType>{{x.dtype, x.shape}, stat, stat, stat, stat};
}

Types InferBatchNormInference(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckBatchNorm(ctx, {1, 2, 3, 4}, {"gamma", "beta", "mean", "var"}));
  HT_RETURN_IF_ERROR(CheckEps(ctx));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, ctx.inputs[0].shape}};
}

Types InferBatchNormGrad(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckBatchNorm(ctx, {2, 3, 4}, {"gamma", "save_mean", "save_invstd"}));
  const ir::ValueType& x = ctx.inputs[0];
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "dy", x.dtype, x.shape, "type of x"));
  const ir::ValueType stat{WideDType(x.dtype), Shape{x.shape.dim(1)}};
  return std::vector<ir::ValueType>{{x.dtype, x.shape}, stat, stat};
}

std::vector<Expr> DecomposeBatchNorm(ir::Builder&, const std::vector<Expr>& in,
                                     const ir::Attributes& attrs) {
  const Expr x = Widened(in[0]);
  const int rank = in[0].shape().rank();
  const BatchMoments batch = MomentsOf(x, in[3], in[4], attrs);
  const Expr y = (x - PerChannel(batch.mean, rank)) * PerChannel(batch.invstd * in[1], rank) +
                 PerChannel(in[2], rank);
  return {CastTo(y, in[0].dtype()), batch.mean, batch.invstd, batch.new_mean, batch.new_var};
}

std::vector<Expr> DecomposeBatchNormInference(ir::Builder&, const std::vector<Expr>& in,
                                              const ir::Attributes& attrs) {
  const Expr x = Widened(in[0]);
  const int rank = in[0].shape().rank();
  const Expr invstd = 1.0 / Sqrt(in[4] + attrs.GetFloat("eps"));
  const Expr y =
      (x - PerChannel(in[3], rank)) * PerChannel(invstd * in[1], rank) + PerChannel(in[2], rank);
  return {CastTo(y, in[0].dtype())};
}

std::vector<Expr> DecomposeBatchNormGrad(ir::Builder&, const std::vector<Expr>& in,
                                         const ir::Attributes&) {
  const Expr x = Widened(in[0]), dy = Widened(in[1]);
  const Expr gamma = in[2], mean = in[3], invstd = in[4];
  const int rank = in[0].shape().rank();
  const Ints axes = AxesBut(rank, 1);
  const Expr xhat = (x - PerChannel(mean, rank)) * PerChannel(invstd, rank);
  const Expr dgamma = Sum(dy * xhat, axes), dbeta = Sum(dy, axes);
  const Expr dx =
      PerChannel(gamma * invstd, rank) *
      (dy - PerChannel(Mean(dy, axes), rank) - xhat * PerChannel(Mean(dy * xhat, axes), rank));
  return {CastTo(dx, in[0].dtype()), dgamma, dbeta};
}

// What arrives at the statistics of the batch is of second derivatives: batch_norm_grad reads them.
Expr GradientOfMoments(ir::GradContext& ctx) {
  const Expr x = Widened(ctx.in(0));
  const Shape& shape = ctx.in(0).shape();
  const int rank = shape.rank();
  const double n = static_cast<double>(shape.num_elements()) / static_cast<double>(shape.dim(1));
  const Expr invstd = ctx.out(2);
  const Expr centred = x - PerChannel(ctx.out(1), rank);
  return PerChannel(ctx.dy(1) / n, rank) -
         centred * PerChannel(ctx.dy(2) * invstd * invstd * invstd / n, rank);
}

// The running statistics carry no gradient.
void BatchNormGradient(ir::GradContext& ctx) {
  std::vector<Expr> d =
      ctx.b.Make("batch_norm_grad", {ctx.in(0), ctx.dy(0), ctx.in(1), ctx.out(1), ctx.out(2)});
  if (ctx.need(0) && (ctx.has_dy(1) || ctx.has_dy(2))) {
    d[0] = d[0] + CastTo(GradientOfMoments(ctx), ctx.in(0).dtype());
  }
  for (int i = 0; i < 3; ++i) {
    if (ctx.need(i)) ctx.set_dx(i, d[i]);
  }
}

// With given statistics dx is dy times a number per channel: the same op, over dy, without shift.
// batch_norm_grad is more than that, but its dgamma and dbeta hold for any statistics.
void BatchNormInferenceGradient(ir::GradContext& ctx) {
  const Expr dy = ctx.dy(0), gamma = ctx.in(1), mean = ctx.in(3), var = ctx.in(4);
  const double eps = ctx.attrs().GetFloat("eps");
  if (ctx.need(0)) {
    const Expr zeros = ctx.b.Constant(Tensor::Zeros(gamma.dtype(), gamma.shape()));
    ctx.set_dx(0, ctx.b.Op("batch_norm_inference", {dy, gamma, zeros, zeros, var}, {{"eps", eps}}));
  }
  if (!ctx.need(1) && !ctx.need(2) && !ctx.need(3) && !ctx.need(4)) return;
  const Expr invstd = 1.0 / Sqrt(var + eps);
  const std::vector<Expr> d = ctx.b.Make("batch_norm_grad", {ctx.in(0), dy, gamma, mean, invstd});
  if (ctx.need(1)) ctx.set_dx(1, d[1]);
  if (ctx.need(2)) ctx.set_dx(2, d[2]);
  if (ctx.need(3)) ctx.set_dx(3, -(gamma * invstd * d[2]));
  if (ctx.need(4)) ctx.set_dx(4, gamma * invstd * invstd * d[1] * -0.5);
}

ir::OpRecord BatchNormRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.source = kBatchNormSource;
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kInfer;
  r.amp.reason = kBatchNormAmpReason;
  r.amp.accumulates_in_f32 = true;
  r.fusion = ir::FusionClass::kReduction;
  r.layout.kind = ir::LayoutClass::kChannelsLast;
  r.layout.channel_blocks = true;
  return r;
}

}  // namespace

void Register_batch_norm(ir::OpRegistry& registry) {
  const ir::DTypeSet wide{DType::kF64, DType::kF32};
  const ir::AttrSpec eps{"eps", ir::AttrType::kFloat, 1e-5, "added to the variance"};

  ir::OpRecord train = BatchNormRecord("batch_norm");
  train.doc =
      "Per channel c (axis 1), over the n other elements: "
      "y = gamma (x - mean) / sqrt(var + eps) + beta with the biased variance of the batch. "
      "new_mean = (1 - m) running_mean + m mean, "
      "new_var = (1 - m) running_var + m var n / (n - 1). "
      "Shapes: x and y [N,C], [N,C,L] or [N,C,H,W]; the rest [C], f32 (f64 for f64 x). "
      "The running statistics carry no gradient.";
  train.inputs = {{"x", ir::kFloats, "[N,C,...]"},
                  {"gamma", wide, "[C]"},
                  {"beta", wide, "[C]"},
                  {"running_mean", wide, "[C]"},
                  {"running_var", wide, "[C]"}};
  train.outputs = {{"y", "as x"},
                   {"save_mean", "[C], of the batch"},
                   {"save_invstd", "[C], 1 / sqrt(var + eps) of the batch"},
                   {"new_mean", "[C], the running mean after this step"},
                   {"new_var", "[C], the running (unbiased) variance after this step"}};
  train.attrs = {{"momentum", ir::AttrType::kFloat, 0.1, "m, the weight of this batch"}, eps};
  train.infer = InferBatchNorm;
  train.amp.keep_f32_inputs = {1, 2, 3, 4};
  train.amp.keep_f32_outputs = {1, 2, 3, 4};
  train.layout.channels_last_inputs = {0};
  train.layout.channels_last_outputs = {0};
  train.in_place = {{3, 3}, {4, 4}};
  train.cost = FlopsPerInput(7);
  train.gradient = BatchNormGradient;
  train.gradient_ops = {"batch_norm_grad", "reshape", "sub", "mul", "div", "add", "cast"};
  train.decompose = DecomposeBatchNorm;
  AddOp(registry, std::move(train));

  ir::OpRecord inference = BatchNormRecord("batch_norm_inference");
  inference.doc =
      "y = gamma (x - mean) / sqrt(var + eps) + beta per channel (axis 1), with given statistics. "
      "Shapes: x and y [N,C], [N,C,L] or [N,C,H,W]; the rest [C], f32 (f64 for f64 x).";
  inference.inputs = {{"x", ir::kFloats, "[N,C,...]"},
                      {"gamma", wide, "[C]"},
                      {"beta", wide, "[C]"},
                      {"mean", wide, "[C]"},
                      {"var", wide, "[C]"}};
  inference.outputs = {{"y", "as x"}};
  inference.attrs = {eps};
  inference.infer = InferBatchNormInference;
  inference.amp.keep_f32_inputs = {1, 2, 3, 4};
  inference.layout.channels_last_inputs = {0};
  inference.layout.channels_last_outputs = {0};
  inference.in_place = {{0, 0}};
  inference.cost = FlopsPerInput(2);
  inference.gradient = BatchNormInferenceGradient;
  inference.gradient_ops = {
      "batch_norm_inference", "batch_norm_grad", "mul", "neg", "add", "div", "sqrt"};
  inference.decompose = DecomposeBatchNormInference;
  AddOp(registry, std::move(inference));

  ir::OpRecord grad = BatchNormRecord("batch_norm_grad");
  grad.doc =
      "Gradient of batch_norm. "
      "With xhat = (x - save_mean) save_invstd and means over a channel: "
      "dx = gamma save_invstd (dy - mean(dy) - xhat mean(dy xhat)), dgamma = sum(dy xhat), "
      "dbeta = sum(dy). Shapes: x, dy and dx [N,C,...], the rest [C].";
  grad.inputs = {{"x", ir::kFloats, "[N,C,...]"},
                 {"dy", ir::kFloats, "as x"},
                 {"gamma", wide, "[C]"},
                 {"save_mean", wide, "[C]"},
                 {"save_invstd", wide, "[C]"}};
  grad.outputs = {{"dx", "as x"}, {"dgamma", "[C]"}, {"dbeta", "[C]"}};
  grad.infer = InferBatchNormGrad;
  grad.amp.keep_f32_inputs = {2, 3, 4};
  grad.amp.keep_f32_outputs = {1, 2};
  grad.amp.same_dtype_inputs = {0, 1};
  grad.layout.channels_last_inputs = {0, 1};
  grad.layout.channels_last_outputs = {0};
  grad.cost = FlopsPerInput(11);
  grad.decompose = DecomposeBatchNormGrad;
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
