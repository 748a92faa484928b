// cross_entropy and cross_entropy_grad.
#include "halftone/graph/ops/support/nn.h"

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
  r.fusion = ir::FusionClass::kReduction;
  r.can_fault = true;
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
      "else []. The loss is f32 (f64 for f64 logits). A target outside [0,C) is a fault. "
      "stats carry no gradient.";
  r.outputs = {{"loss", "[] or the shape of target"},
               {"stats", "[2, shape of target], for the gradient"}};
  r.infer = InferCrossEntropy;
  r.amp.keep_f32_outputs = {0, 1};
  r.gradient = [](ir::GradContext& ctx) {
    if (!ctx.need(0)) return;
    ctx.set_dx(0, ctx.b.Op("cross_entropy_grad", {ctx.in(0), ctx.in(1), ctx.out(1), ctx.dy(0)},
                           ctx.attrs()));
  };
  r.gradient_ops = {"cross_entropy_grad"};
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
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
