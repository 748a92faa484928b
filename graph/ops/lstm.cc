// lstm and lstm_grad: one layer of long short-term memory in one direction. What the input gives to
// the gates is made before, by one product over all steps, and so are the gradients of all weights
// after.
#include "halftone/graph/ops/support/recurrence.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

namespace lstm {
enum Port { kX, kW, kH0, kC0, kProjection };
enum GradPort { kGates, kGradW, kGradC0, kC, kDh, kDcn, kGradProjection };
}  // namespace lstm

// h has as many columns as w: as there are cells, or rows of the projection.
absl::Status CheckProjection(const InferContext& ctx, int port, const RecurrenceSize& size) {
  if (static_cast<int>(ctx.inputs.size()) <= port) {
    if (size.features == size.hidden) return absl::OkStatus();
    return OpError(ctx, "w is ", ctx.inputs[lstm::kW].ToString(), "; expected [", 4 * size.hidden,
                   ",", size.hidden, "], or a projection w_hr");
  }
  return CheckType(ctx, port, "w_hr", ctx.inputs[0].dtype, Shape{size.features, size.hidden},
                   "from the cells to the columns of w");
}

Types InferLstm(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const RecurrenceSize s, CheckRecurrence(ctx, "x", 4));
  HT_RETURN_IF_ERROR(CheckProjection(ctx, lstm::kProjection, s));
  const ir::ValueType& x = ctx.inputs[lstm::kX];
  const DType wide = WideDType(x.dtype);
  HT_RETURN_IF_ERROR(CheckType(ctx, lstm::kH0, "h0", x.dtype, Shape{s.batch, s.features},
                               "batch of x, columns of w"));
  HT_RETURN_IF_ERROR(
      CheckType(ctx, lstm::kC0, "c0", wide, Shape{s.batch, s.hidden}, "a number for each cell"));
  return std::vector<ir::ValueType>{{x.dtype, Shape{s.steps, s.batch, s.features}},
                                    {wide, Shape{s.batch, s.hidden}},
                                    {wide, Shape{s.steps, s.batch, s.hidden}},
                                    {x.dtype, x.shape}};
}

Types InferLstmGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const RecurrenceSize s, CheckRecurrence(ctx, "gates", 4));
  HT_RETURN_IF_ERROR(CheckProjection(ctx, lstm::kGradProjection, s));
  const ir::ValueType& gates = ctx.inputs[lstm::kGates];
  const DType wide = WideDType(gates.dtype);
  const Shape cells{s.batch, s.hidden};
  HT_RETURN_IF_ERROR(CheckType(ctx, lstm::kGradC0, "c0", wide, cells, "a number for each cell"));
  HT_RETURN_IF_ERROR(CheckType(ctx, lstm::kC, "c", wide, Shape{s.steps, s.batch, s.hidden},
                               "a number for each cell and step"));
  HT_RETURN_IF_ERROR(CheckType(ctx, lstm::kDh, "dh", gates.dtype,
                               Shape{s.steps, s.batch, s.features},
                               "steps and batch of gates, columns of w"));
  HT_RETURN_IF_ERROR(CheckType(ctx, lstm::kDcn, "dc_n", wide, cells, "a number for each cell"));
  return std::vector<ir::ValueType>{{gates.dtype, gates.shape},
                                    {gates.dtype, Shape{s.batch, s.features}},
                                    {wide, cells},
                                    {gates.dtype, ctx.inputs[lstm::kDh].shape}};
}

// What the projection multiplied: o tanh(c), as the op rounds it.
Expr Projected(Expr gates, Expr c) {
  const int64_t hidden = c.shape()[2];
  const Expr o = Widened(LastAxisSlice(gates, 3 * hidden, 4 * hidden));
  const Expr active = o * Tanh(c);
  return CastTo(active, gates.dtype());
}

void LstmGradient(ir::GradContext& ctx) {
  const bool projects = ctx.node.num_inputs() > lstm::kProjection;
  const Expr h = ctx.out(0), c = ctx.out(2), gates = ctx.out(3);
  std::vector<Expr> in = {gates, ctx.in(lstm::kW), ctx.in(lstm::kC0), c, ctx.dy(0), ctx.dy(1)};
  if (projects) in.push_back(ctx.in(lstm::kProjection));
  const std::vector<Expr> d = ctx.b.Make("lstm_grad", in, ctx.attrs());
  if (ctx.need(lstm::kX)) ctx.set_dx(lstm::kX, d[0]);
  if (ctx.need(lstm::kW)) {
    const Expr previous = PreviousStates(ctx.in(lstm::kH0), h, ctx.attrs().GetBool("reverse"));
    ctx.set_dx(lstm::kW, WeightGradient(d[0], previous));
  }
  if (ctx.need(lstm::kH0)) ctx.set_dx(lstm::kH0, d[1]);
  if (ctx.need(lstm::kC0)) ctx.set_dx(lstm::kC0, d[2]);
  if (projects && ctx.need(lstm::kProjection)) {
    ctx.set_dx(lstm::kProjection, WeightGradient(d[3], Projected(gates, c)));
  }
}

// Each step multiplies w and the projection, if there is one.
ir::Cost LstmCost(const ir::Node& node, int projection) {
  int64_t weights = node.input_type(lstm::kW).num_elements();
  if (node.num_inputs() > projection) weights += node.input_type(projection).num_elements();
  return RecurrenceCost(node, weights);
}

ir::OpRecord LstmRecord(const char* name) {
  return RecurrenceRecord(
      name,
      "Hochreiter, Schmidhuber: \"Long short-term memory\", Neural Computation 9, 1997; projection: "
      "Sak et al.: https://arxiv.org/abs/1402.1128, equations 1 to 6 without peepholes; "
      "https://pytorch.org/docs/stable/generated/torch.nn.LSTM.html");
}

}  // namespace

void Register_lstm(ir::OpRegistry& registry) {
  const ir::DTypeSet wide{DType::kF64, DType::kF32};
  const ir::InputSpec projection = {"w_hr", ir::kFloats, "[P,H]; absent: P = H", /*optional=*/true};

  ir::OpRecord r = LstmRecord("lstm");
  r.doc =
      "Steps over time, with x what the input and all biases give to the gates: "
      "(i, f, g, o) = x[t] + h[t-1] w^T, of which i, f and o go through sigmoid and g through tanh; "
      "c[t] = f c[t-1] + i g; h[t] = o tanh(c[t]), times w_hr^T where it is given. "
      "h0 and c0 come before the first step; with reverse, the last step is the first. "
      "Shapes: x [T,B,4H], w [4H,P], h0 [B,P], c0 [B,H], w_hr [P,H]; h [T,B,P], "
      "c_n [B,H], c after the last step; for the gradient, and without one of their own, c [T,B,H] "
      "and gates [T,B,4H] as they are used. "
      "c is f32 (f64 for f64) and so is all arithmetic; h, and what w_hr multiplies, are rounded "
      "at each step to the dtype of x. At least one step.";
  r.inputs = {{"x", ir::kFloats, "[T,B,4H]"},
              {"w", ir::kFloats, "[4H,P], dtype of x"},
              {"h0", ir::kFloats, "[B,P], dtype of x"},
              {"c0", wide, "[B,H]"},
              projection};
  r.outputs = {{"h", "[T,B,P]"}, {"c_n", "[B,H]"}, {"c", "[T,B,H]"}, {"gates", "[T,B,4H]"}};
  r.infer = InferLstm;
  r.amp.reason =
      "matrix units multiply 16-bit states and weights at each step; gates and cells are f32";
  r.amp.same_dtype_inputs = {lstm::kX, lstm::kW, lstm::kH0, lstm::kProjection};
  r.amp.keep_f32_inputs = {lstm::kC0};
  r.amp.keep_f32_outputs = {1, 2};
  r.in_place = {{lstm::kX, 3}};
  r.cost = [](const ir::Node& node) { return LstmCost(node, lstm::kProjection); };
  r.gradient = LstmGradient;
  r.gradient_ops = RecurrenceGradientOps({"lstm_grad", "tanh", "mul", "cast"});
  AddOp(registry, std::move(r));

  ir::OpRecord grad = LstmRecord("lstm_grad");
  grad.no_gradient = kNoSecond;
  grad.doc =
      "Gradient of lstm by its steps, from the last to the first: dh[t] gets dx[t+1] w, "
      "dm = dh[t], or dh[t] w_hr; dc = dc f[t+1] + dm o (1 - tanh(c)^2) with dc_n after the last "
      "step; dx[t] is (dc g, dc c[t-1], dc i, dm tanh(c)) times the slope of each gate. Shapes as "
      "lstm; the last output is dh with what later steps give, for the gradient of w_hr. Those of "
      "the weights are products over all steps. Arithmetic is f32 (f64 for f64); dx, "
      "and dh before w_hr, are rounded at each step.";
  grad.inputs = {{"gates", ir::kFloats, "fourth output of lstm"},
                 {"w", ir::kFloats, "[4H,P]"},
                 {"c0", wide, "[B,H]"},
                 {"c", wide, "third output of lstm"},
                 {"dh", ir::kFloats, "[T,B,P]"},
                 {"dc_n", wide, "[B,H]"},
                 projection};
  grad.outputs = {{"dx", "[T,B,4H]"}, {"dh0", "[B,P]"}, {"dc0", "[B,H]"}, {"dh", "[T,B,P]"}};
  grad.infer = InferLstmGrad;
  grad.amp.reason =
      "gradient of lstm: products of 16-bit gradients and weights; gates and cells are f32";
  grad.amp.same_dtype_inputs = {lstm::kGates, lstm::kGradW, lstm::kDh, lstm::kGradProjection};
  grad.amp.keep_f32_inputs = {lstm::kGradC0, lstm::kC, lstm::kDcn};
  grad.amp.keep_f32_outputs = {2};
  grad.in_place = {{lstm::kGates, 0}, {lstm::kDcn, 2}, {lstm::kDh, 3}};
  grad.cost = [](const ir::Node& node) { return LstmCost(node, lstm::kGradProjection); };
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
