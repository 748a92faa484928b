// gru and gru_grad: one layer of gated recurrent units in one direction. What the input gives to the
// gates is made before, by one product over all steps, and so are the gradients of all weights after.
#include "halftone/graph/ops/support/recurrence.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

namespace gru {
enum Port { kX, kW, kH0, kBias };
enum GradPort { kGates, kGradW, kGradH0, kH, kShare, kDh };
}  // namespace gru

absl::Status CheckGruStates(const InferContext& ctx, const RecurrenceSize& s) {
  const DType dtype = ctx.inputs[0].dtype;
  if (s.features != s.hidden) {
    return OpError(ctx, "w is ", ctx.inputs[gru::kW].ToString(), "; expected [", 3 * s.hidden, ",",
                   s.hidden, "]");
  }
  return CheckType(ctx, gru::kH0, "h0", dtype, Shape{s.batch, s.hidden},
                   "batch of the gates, columns of w");
}

Types InferGru(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const RecurrenceSize s, CheckRecurrence(ctx, "x", 3));
  HT_RETURN_IF_ERROR(CheckGruStates(ctx, s));
  const ir::ValueType& x = ctx.inputs[gru::kX];
  if (ctx.inputs.size() > gru::kBias) {
    HT_RETURN_IF_ERROR(CheckType(ctx, gru::kBias, "b", WideDType(x.dtype), Shape{3 * s.hidden},
                                 "a number for each gate"));
  }
  const ir::ValueType state{x.dtype, Shape{s.steps, s.batch, s.hidden}};
  return std::vector<ir::ValueType>{state, {x.dtype, x.shape}, state};
}

Types InferGruGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const RecurrenceSize s, CheckRecurrence(ctx, "gates", 3));
  HT_RETURN_IF_ERROR(CheckGruStates(ctx, s));
  const ir::ValueType& gates = ctx.inputs[gru::kGates];
  for (const auto& [port, name] : {std::pair(gru::kH, "h"), {gru::kShare, "s"}, {gru::kDh, "dh"}}) {
    HT_RETURN_IF_ERROR(CheckType(ctx, port, name, gates.dtype, Shape{s.steps, s.batch, s.hidden},
                                 "steps and batch of gates, columns of w"));
  }
  const ir::ValueType of_gates{gates.dtype, gates.shape};
  return std::vector<ir::ValueType>{of_gates, {gates.dtype, Shape{s.batch, s.hidden}}, of_gates};
}

void GruGradient(ir::GradContext& ctx) {
  const Expr h = ctx.out(0);
  const std::vector<Expr> d = ctx.b.Make(
      "gru_grad", {ctx.out(1), ctx.in(gru::kW), ctx.in(gru::kH0), h, ctx.out(2), ctx.dy(0)},
      ctx.attrs());
  if (ctx.need(gru::kX)) ctx.set_dx(gru::kX, d[0]);
  if (ctx.need(gru::kW)) {
    const Expr previous = PreviousStates(ctx.in(gru::kH0), h, ctx.attrs().GetBool("reverse"));
    ctx.set_dx(gru::kW, WeightGradient(d[2], previous));
  }
  if (ctx.need(gru::kH0)) ctx.set_dx(gru::kH0, d[1]);
  if (ctx.node.num_inputs() > gru::kBias && ctx.need(gru::kBias)) {
    ctx.set_dx(gru::kBias, ctx.b.Op("sum", {StepsAsRows(d[2])},
                                    {{"axes", Ints{0}},
                                     {"out", WidenTo(d[2].dtype(), ctx.in(gru::kBias).dtype())}}));
  }
}

ir::OpRecord GruRecord(const char* name) {
  ir::OpRecord r = RecurrenceRecord(
      name,
      "Cho et al.: https://arxiv.org/abs/1406.1078, with the reset gate behind the product; "
      "https://pytorch.org/docs/stable/generated/torch.nn.GRU.html");
  r.cost = [](const ir::Node& node) {
    return RecurrenceCost(node, node.input_type(gru::kW).num_elements());
  };
  return r;
}

}  // namespace

void Register_gru(ir::OpRegistry& registry) {
  ir::OpRecord r = GruRecord("gru");
  r.doc =
      "Steps over time, with x = (xr, xz, xn) what the input and its biases give to the gates and "
      "(sr, sz, sn) = h[t-1] w^T + b: r = sigmoid(xr + sr), z = sigmoid(xz + sz), "
      "n = tanh(xn + r sn), h[t] = (1 - z) n + z h[t-1]. "
      "h0 comes before the first step; with reverse, the last step is the first. "
      "Shapes: x [T,B,3H], w [3H,H], h0 [B,H], b [3H]; h [T,B,H]; for the gradient, and without "
      "one of their own, gates [T,B,3H] as they are used, and s [T,B,H], sn of each step. "
      "Arithmetic is f32 (f64 for f64), and so is the state from step to step; w multiplies it as "
      "h has it, rounded to the dtype of x. At least one step.";
  r.inputs = {{"x", ir::kFloats, "[T,B,3H]"},
              {"w", ir::kFloats, "[3H,H], dtype of x"},
              {"h0", ir::kFloats, "[B,H], dtype of x"},
              {"b", {DType::kF64, DType::kF32}, "[3H]; absent: 0", /*optional=*/true}};
  r.outputs = {{"h", "[T,B,H]"}, {"gates", "[T,B,3H]"}, {"s", "[T,B,H]"}};
  r.infer = InferGru;
  r.amp.reason =
      "matrix units multiply 16-bit states and weights at each step; gates and the state from step "
      "to step are f32";
  r.amp.same_dtype_inputs = {gru::kX, gru::kW, gru::kH0};
  r.amp.keep_f32_inputs = {gru::kBias};
  r.in_place = {{gru::kX, 1}};
  r.gradient = GruGradient;
  r.gradient_ops = RecurrenceGradientOps({"gru_grad", "sum"});
  AddOp(registry, std::move(r));

  ir::OpRecord grad = GruRecord("gru_grad");
  grad.no_gradient = kNoSecond;
  grad.doc =
      "Gradient of gru by its steps, from the last to the first: e = dh[t] + ds[t+1] w + e[t+1] "
      "z[t+1]; dn = e (1 - z) (1 - n^2), dr = dn sn r (1 - r), dz = e (h[t-1] - n) z (1 - z); "
      "dx[t] = (dr, dz, dn), and ds[t] = (dr, dz, dn r) for w and b, whose gradients are products "
      "and sums over all steps. Shapes as gru. Arithmetic is f32 (f64 for f64); dx and ds are "
      "rounded at each step.";
  grad.inputs = {{"gates", ir::kFloats, "second output of gru"},
                 {"w", ir::kFloats, "[3H,H]"},
                 {"h0", ir::kFloats, "[B,H]"},
                 {"h", ir::kFloats, "first output of gru"},
                 {"s", ir::kFloats, "third output of gru"},
                 {"dh", ir::kFloats, "[T,B,H]"}};
  grad.outputs = {{"dx", "[T,B,3H]"}, {"dh0", "[B,H]"}, {"ds", "[T,B,3H]"}};
  grad.infer = InferGruGrad;
  grad.amp.reason =
      "gradient of gru: products of 16-bit gradients and weights; gates and sums are f32";
  grad.amp.same_dtype_inputs = {gru::kGates, gru::kGradW, gru::kGradH0,
                                gru::kH,     gru::kShare, gru::kDh};
  grad.in_place = {{gru::kGates, 0}};
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
