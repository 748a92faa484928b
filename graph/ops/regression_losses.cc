// mse_loss and l1_loss.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

Types InferRegressionLoss(const InferContext& ctx) {
  const ir::ValueType& a = ctx.inputs[0];
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "b", a.dtype, a.shape, "type of a"));
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "reduction", {"none", "sum", "mean"}));
  const bool each = ctx.attrs.GetString("reduction") == "none";
  return OneType(WideDType(a.dtype), each ? a.shape : Shape{});
}

// The loss from the loss of each element.
Expr ReducedLoss(Expr each, const ir::Attributes& attrs) {
  const std::string& reduction = attrs.GetString("reduction");
  if (!each.valid() || reduction == "none") return each;
  const Ints axes = AllAxes(each.shape().rank());
  return reduction == "sum" ? Sum(each, axes) : Mean(each, axes);
}

// The gradient arriving at each element: dloss, divided by their number under "mean".
Expr ShareOfLoss(ir::GradContext& ctx) {
  const Expr dloss = ctx.dy(0);
  if (ctx.attrs().GetString("reduction") != "mean") return dloss;
  return dloss * (1 / static_cast<double>(ctx.node.input_type(0).num_elements()));
}

// Sets da, and db = -da.
void SetDifferenceGradient(ir::GradContext& ctx, Expr da) {
  da = CastTo(da, ctx.in(0).dtype());
  if (ctx.need(0)) ctx.set_dx(0, da);
  if (ctx.need(1)) ctx.set_dx(1, -da);
}

Expr WideDifference(const std::vector<Expr>& in) { return Widened(in[0]) - Widened(in[1]); }

ir::OpRecord RegressionLossRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.inputs = {{"a", ir::kFloats, "prediction, any shape"}, {"b", ir::kFloats, "target, type of a"}};
  r.outputs = {{"loss", "[], or the shape of a under \"none\"; f32 (f64 for f64)"}};
  r.attrs = {
      {"reduction", ir::AttrType::kString, std::string("mean"), "\"mean\", \"sum\" or \"none\""}};
  r.infer = InferRegressionLoss;
  r.amp = Deny("the loss and its gradient need f32's range and digits");
  r.amp.accumulates_in_f32 = true;
  r.amp.keep_f32_outputs = {0};
  r.fusion = ir::FusionClass::kReduction;
  r.cost = FlopsPerInput(3);
  return r;
}

}  // namespace

void Register_regression_losses(ir::OpRegistry& registry) {
  ir::OpRecord mse = RegressionLossRecord("mse_loss");
  mse.doc = "loss = (a - b)^2, its sum or its mean. Shapes: a and b alike; no broadcasting.";
  mse.source = "https://pytorch.org/docs/stable/generated/torch.nn.MSELoss.html";
  mse.decompose = [](ir::Builder&, const std::vector<Expr>& in, const ir::Attributes& attrs) {
    const Expr d = WideDifference(in);
    return std::vector<Expr>{ReducedLoss(d * d, attrs)};
  };
  mse.gradient = [](ir::GradContext& ctx) {
    const Expr d = WideDifference({ctx.in(0), ctx.in(1)});
    SetDifferenceGradient(ctx, d * (ShareOfLoss(ctx) * 2.0));
  };
  mse.gradient_ops = {"cast", "sub", "mul", "neg"};
  AddOp(registry, std::move(mse));

  ir::OpRecord l1 = RegressionLossRecord("l1_loss");
  l1.doc =
      "loss = |a - b|, its sum or its mean. Shapes: a and b alike; no broadcasting. "
      "The gradient at a = b is 0.";
  l1.source = "https://pytorch.org/docs/stable/generated/torch.nn.L1Loss.html";
  l1.decompose = [](ir::Builder&, const std::vector<Expr>& in, const ir::Attributes& attrs) {
    return std::vector<Expr>{ReducedLoss(Abs(WideDifference(in)), attrs)};
  };
  // d * 0 rather than 0 where neither sign holds, so that NaN stays NaN.
  l1.gradient = [](ir::GradContext& ctx) {
    const Expr d = WideDifference({ctx.in(0), ctx.in(1)}), zero = Number(d, 0);
    const Expr share = ShareOfLoss(ctx);
    SetDifferenceGradient(ctx, Where(Less(zero, d), share, Where(Less(d, zero), -share, d * 0.0)));
  };
  l1.gradient_ops = {"cast", "sub", "mul", "neg", "less", "where"};
  AddOp(registry, std::move(l1));
}

}  // namespace halftone::ops
