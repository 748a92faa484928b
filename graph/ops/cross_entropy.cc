// cross_entropy and cross_entropy_grad.
#include "halftone/graph/ops/support/softmax_stats.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

// Checks everything that both ops have in common: class axis, target, attributes.
absl::Status CheckCrossEntropy(const InferContext& ctx) {
  const ir::ValueType &logits = ctx.inputs[0], &target = ctx.inputs[1];
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "logits", 1, kMaxRank));
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", logits));
  if (logits.shape.dim(axis) < 1) {
    return InvalidArgument(ctx.op, ": logits is ", logits.ToString(), " with class axis ", axis,
                           "; expected one class or more");
  }
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "target", target.dtype,
                               ReducedShape(logits.shape, {axis}, false),
                               Concat("logits ", logits.ToString(), " without axis ", axis)));
  const double smoothing = ctx.attrs.GetFloat("label_smoothing");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "label_smoothing", smoothing >= 0 && smoothing <= 1, "0..1"));
  return CheckChoice(ctx, "reduction", {"none", "sum", "mean"});
}

// The loss: per target under reduction "none", else one number.
ir::ValueType CrossEntropyLossType(const InferContext& ctx) {
  const bool each = ctx.attrs.GetString("reduction") == "none";
  return {WideDType(ctx.inputs[0].dtype), each ? ctx.inputs[1].shape : Shape{}};
}

// Of each line the largest logit, then log(sum(exp(logit - largest))). Apart, since their sum would
// round the second away beside a large first: the gradient would lose its digits.
absl::StatusOr<Shape> StatsShape(const InferContext& ctx) {
  Ints dims = {2};
  for (int64_t extent : ctx.inputs[1].shape.dims()) dims.push_back(extent);
  return MakeShape(ctx, dims);
}

Types InferCrossEntropy(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckCrossEntropy(ctx));
  HT_ASSIGN_OR_RETURN(const Shape stats, StatsShape(ctx));
  return std::vector<ir::ValueType>{CrossEntropyLossType(ctx),
                                    {WideDType(ctx.inputs[0].dtype), stats}};
}

Types InferCrossEntropyGrad(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckCrossEntropy(ctx));
  const DType wide = WideDType(ctx.inputs[0].dtype);
  HT_ASSIGN_OR_RETURN(const Shape stats, StatsShape(ctx));
  HT_RETURN_IF_ERROR(CheckType(ctx, 2, "stats", wide, stats, "two values per target"));
  const ir::ValueType loss = CrossEntropyLossType(ctx);
  HT_RETURN_IF_ERROR(CheckType(ctx, 3, "dloss", loss.dtype, loss.shape, "type of the loss"));
  return OneType(ctx.inputs[0].dtype, ctx.inputs[0].shape);
}

int ClassAxis(ir::GradContext& ctx) {
  return CheckedAxis(ctx.attrs().GetInt("axis"), ctx.in(0).shape().rank());
}

Expr Probabilities(ir::GradContext& ctx) {
  return ctx.b.Op("softmax", {Widened(ctx.in(0))}, {{"axis", int64_t{ClassAxis(ctx)}}});
}

void CrossEntropyGradient(ir::GradContext& ctx) {
  if (!ctx.need(0)) return;
  Expr dlogits =
      ctx.b.Op("cross_entropy_grad", {ctx.in(0), ctx.in(1), ctx.out(1), ctx.dy(0)}, ctx.attrs());
  if (ctx.has_dy(1)) {  // of second derivatives
    const Expr of_stats =
        StatsGradient(Widened(ctx.in(0)), Probabilities(ctx), ctx.dy(1), ClassAxis(ctx));
    dlogits = dlogits + CastTo(of_stats, dlogits.dtype());
  }
  ctx.set_dx(0, dlogits);
}

// What each target's part of the loss weighs in it, as its gradient takes it: dloss, over the number of
// targets that count under "mean"; 0 where ignored. In the shape of logits with one class.
Expr WeightOfTargets(ir::GradContext& ctx) {
  const Expr target = CastTo(ctx.in(1), DType::kI64);
  const Expr ignored = ctx.b.Constant(
      Tensor::Of(DType::kI64, {}, {static_cast<double>(ctx.attrs().GetInt("ignore_index"))}));
  const Expr counts = NotEqual(target, ignored);
  Expr dloss = ctx.in(3);
  if (ctx.attrs().GetString("reduction") == "mean") {
    dloss = dloss / Sum(CastTo(counts, dloss.dtype()), AllAxes(target.shape().rank()));
  }
  const Expr weight = Where(counts, dloss, Number(dloss, 0));
  return ReshapeTo(weight, ReducedShape(ctx.in(0).shape(), {ClassAxis(ctx)}, true));
}

// With p the probabilities that logits and stats give, w the weight of a target and v what arrives:
// dlogits = p v w, and each of the two stats gets -sum(p v w) along the class axis. The first
// derivative is linear in dloss.
void CrossEntropyGradGradient(ir::GradContext& ctx) {
  const int axis = ClassAxis(ctx);
  const Expr v = Widened(ctx.dy(0));
  if (ctx.need(0) || ctx.need(2)) {
    const Shape lines = ReducedShape(ctx.in(0).shape(), {axis}, true);
    const Expr max = Statistic(ctx.in(2), 0, lines), log_sum = Statistic(ctx.in(2), 1, lines);
    const Expr p = Exp(Widened(ctx.in(0)) - max - log_sum);
    const Expr dlogits = p * v * WeightOfTargets(ctx);
    if (ctx.need(0)) ctx.set_dx(0, CastTo(dlogits, ctx.in(0).dtype()));
    const Expr dstat = -Sum(dlogits, {axis}, true);
    if (ctx.need(2)) ctx.set_dx(2, JoinedStats(dstat, dstat, ctx.in(2).shape()));
  }
  if (!ctx.need(3)) return;
  const Expr dloss = ctx.in(3);
  const Expr slope = ctx.b.Op(
      "cross_entropy_grad",
      {Widened(ctx.in(0)), ctx.in(1), ctx.in(2), BroadcastTo(Number(dloss, 1), dloss.shape())},
      ctx.attrs());
  const bool each = ctx.attrs().GetString("reduction") == "none";
  ctx.set_dx(3, Sum(v * slope, each ? Ints{axis} : AllAxes(slope.shape().rank())));
}

ir::OpRecord CrossEntropyRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.source =
      "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html "
      "(class indices, no weights)";
  r.inputs = {
      {"logits", ir::kFloats, "[N,C], [N,C,d1,...] or [C]"},
      {"target", ir::kIndices, "logits' shape without the class axis; in [0,C) or ignored"}};
  r.attrs = {
      {"axis", ir::AttrType::kInt, int64_t{1}, "class axis; negative counts from the end"},
      {"label_smoothing", ir::AttrType::kFloat, 0.0,
       "share of each label spread evenly over all classes"},
      {"ignore_index", ir::AttrType::kInt, int64_t{-100}, "targets of this value do not count"},
      {"reduction", ir::AttrType::kString, std::string("mean"), "\"mean\", \"sum\" or \"none\""}};
  r.amp = Deny("the loss and its gradient need f32's range and digits");
  r.amp.accumulates_in_f32 = true;
  r.amp.widens_inputs = {0};
  r.fusion = ir::FusionClass::kReduction;
  r.index_extent = ExtentAlongAxis();
  r.cost = FlopsPerInput(5);
  return r;
}

}  // namespace

void Register_cross_entropy(ir::OpRegistry& registry) {
  ir::OpRecord r = CrossEntropyRecord("cross_entropy");
  r.doc =
      "With m = max(logits), log_sum = log(sum(exp(logits - m))), "
      "lse = m + log_sum along the class axis and e = label_smoothing: "
      "loss = (1 - e) (lse - logits[target]) + e (lse - mean(logits)); ignored targets give 0. "
      "\"mean\" divides the sum by the number of targets that count (none: NaN, as PyTorch). "
      "stats are m, then log_sum. "
      "Shapes: logits [N,C,...], target [N,...], stats [2,N,...], loss [N,...] under \"none\", "
      "else []. The loss is f32 (f64 for f64 logits). A target outside [0,C) is a fault.";
  r.outputs = {{"loss", "[] or the shape of target"},
               {"stats", "[2, shape of target], for the gradient"}};
  r.infer = InferCrossEntropy;
  r.amp.keep_f32_outputs = {0, 1};
  r.gradient = CrossEntropyGradient;
  r.gradient_ops = {"cross_entropy_grad",
                    "softmax",
                    "argmax",
                    "equal",
                    "slice",
                    "reshape",
                    "sub",
                    "mul",
                    "add",
                    "cast"};
  AddOp(registry, std::move(r));

  const ir::DTypeSet wide{DType::kF64, DType::kF32};
  ir::OpRecord grad = CrossEntropyRecord("cross_entropy_grad");
  grad.doc =
      "dlogits = (exp(logits - m - log_sum) - (1 - e) onehot(target) - e / C) dloss, "
      "divided by the number of targets that count under \"mean\"; 0 where ignored. "
      "Shapes as cross_entropy.";
  grad.inputs.push_back({"stats", wide, "second output of cross_entropy"});
  grad.inputs.push_back({"dloss", wide, "as the loss"});
  grad.outputs = {{"dlogits", "as logits"}};
  grad.infer = InferCrossEntropyGrad;
  grad.amp.keep_f32_inputs = {2, 3};
  grad.in_place = {{0, 0}};
  grad.gradient = CrossEntropyGradGradient;
  grad.gradient_ops = {"cross_entropy_grad",
                       "slice",
                       "reshape",
                       "concat",
                       "sub",
                       "exp",
                       "mul",
                       "neg",
                       "div",
                       "sum",
                       "cast",
                       "not_equal",
                       "where",
                       "broadcast_to"};
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
