// softmax, log_softmax and their gradients.
#include <set>

#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

absl::Status CheckSoftmaxAxis(const InferContext& ctx) {
  const int rank = ctx.inputs[0].shape.rank();
  const int64_t axis = ctx.attrs.GetInt("axis");
  if (axis >= -rank && axis < rank) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": axis ", axis, " out of range for ", ctx.inputs[0].ToString(),
                         "; expected ",
                         rank == 0 ? "rank 1 or more" : Concat(-rank, "..", rank - 1));
}

Types InferSoftmax(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckSoftmaxAxis(ctx));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, ctx.inputs[0].shape}};
}

Types InferSoftmaxGrad(const InferContext& ctx) {
  const ir::ValueType& y = ctx.inputs[0];
  HT_RETURN_IF_ERROR(CheckSoftmaxAxis(ctx));
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "dy", y.dtype, y.shape, "type of y"));
  return std::vector<ir::ValueType>{{y.dtype, y.shape}};
}

Ints SoftmaxAxes(const Expr& x, const ir::Attributes& attrs) {
  const int64_t axis = attrs.GetInt("axis");
  return {axis < 0 ? axis + x.shape().rank() : axis};
}

std::vector<Expr> DecomposeSoftmax(ir::Builder&, const std::vector<Expr>& in,
                                   const ir::Attributes& attrs) {
  const Expr x = Widened(in[0]);
  const Ints axes = SoftmaxAxes(in[0], attrs);
  const Expr e = Exp(x - Max(x, axes, true));
  return {CastTo(e / Sum(e, axes, true), in[0].dtype())};
}

std::vector<Expr> DecomposeLogSoftmax(ir::Builder&, const std::vector<Expr>& in,
                                      const ir::Attributes& attrs) {
  const Expr x = Widened(in[0]);
  const Ints axes = SoftmaxAxes(in[0], attrs);
  const Expr shifted = x - Max(x, axes, true);
  const Expr y = shifted - Log(Sum(Exp(shifted), axes, true));
  return {CastTo(y, in[0].dtype())};
}

std::vector<Expr> DecomposeSoftmaxGrad(ir::Builder&, const std::vector<Expr>& in,
                                       const ir::Attributes& attrs) {
  const Expr y = Widened(in[0]), dy = Widened(in[1]);
  return {CastTo(y * (dy - Sum(y * dy, SoftmaxAxes(in[0], attrs), true)), in[0].dtype())};
}

std::vector<Expr> DecomposeLogSoftmaxGrad(ir::Builder&, const std::vector<Expr>& in,
                                          const ir::Attributes& attrs) {
  const Expr y = Widened(in[0]), dy = Widened(in[1]);
  const Expr dx = dy - Exp(y) * Sum(dy, SoftmaxAxes(in[0], attrs), true);
  return {CastTo(dx, in[0].dtype())};
}

// Whether the value reaches a loss (what `backward` or `gradient` starts from, or a float scalar
// that the graph returns) with no 16-bit op such as a matmul in between.
bool FeedsLoss(const ir::Node& node) {
  const ir::UseMap uses(node.graph());
  std::vector<ir::Value> work{node.output()};
  std::set<int64_t> seen;
  while (!work.empty()) {
    const ir::Value v = work.back();
    work.pop_back();
    if (uses.is_output(v) && v.shape().rank() == 0) return true;
    for (const ir::UseMap::Use& use : uses.uses(v)) {
      const ir::OpRecord& op = use.node->op();
      if (op.name == "backward" || (op.name == "gradient" && use.port == 0)) return true;
      if (op.amp.f16 == ir::AmpClass::kAllow || !seen.insert(use.node->id()).second) continue;
      for (int i = 0; i < use.node->num_outputs(); ++i) {
        if (IsFloat(use.node->output_type(i).dtype)) work.push_back(use.node->output(i));
      }
    }
  }
  return false;
}

ir::OpRecord SoftmaxRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.source =
      "Bridle: \"Probabilistic interpretation of feedforward classification network outputs\", 1990; "
      "https://pytorch.org/docs/stable/generated/torch.nn.Softmax.html";
  r.inputs = {{"x", ir::kFloats, "any shape of rank 1 or more"}};
  r.outputs = {{"y", "as x"}};
  r.attrs = {{"axis", ir::AttrType::kInt, int64_t{-1}, "negative counts from the end"}};
  r.infer = InferSoftmax;
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kInfer;
  r.amp.accumulates_in_f32 = true;
  r.fusion = ir::FusionClass::kReduction;
  r.cost = FlopsPerInput(5);
  r.in_place = {{0, 0}};
  return r;
}

ir::OpRecord SoftmaxGradRecord(const char* name) {
  ir::OpRecord r = SoftmaxRecord(name);
  r.inputs = {{"y", ir::kFloats, "output of the forward op"}, {"dy", ir::kFloats, "as y"}};
  r.outputs = {{"dx", "as y"}};
  r.infer = InferSoftmaxGrad;
  r.amp.same_dtype_inputs = {0, 1};
  r.cost = FlopsPerInput(4);
  r.in_place = {{1, 0}};
  return r;
}

// Both gradients are ops of y and dy.
std::function<void(ir::GradContext&)> SoftmaxGradientBy(const char* op) {
  return [op](ir::GradContext& ctx) {
    if (ctx.need(0)) ctx.set_dx(0, ctx.b.Op(op, {ctx.out(0), ctx.dy(0)}, ctx.attrs()));
  };
}

}  // namespace

void Register_softmax(ir::OpRegistry& registry) {
  ir::OpRecord softmax = SoftmaxRecord("softmax");
  softmax.doc =
      "y = exp(x - max) / sum(exp(x - max)) along the axis. Shapes: x and y alike. "
      "Entries of -inf get exactly 0.";
  softmax.amp.reason = "bounded result; maximum and sum are f32 inside";
  softmax.range = [](const ir::Node&, const std::vector<ir::ValueRange>&) {
    return ir::ValueRange::Between(0, 1);
  };
  softmax.gradient = SoftmaxGradientBy("softmax_grad");
  softmax.gradient_ops = {"softmax_grad"};
  softmax.decompose = DecomposeSoftmax;
  AddOp(registry, std::move(softmax));

  ir::OpRecord log_softmax = SoftmaxRecord("log_softmax");
  log_softmax.doc = "y = x - max - log(sum(exp(x - max))) along the axis. Shapes: x and y alike.";
  log_softmax.amp.reason = "maximum and sum are f32 inside";
  log_softmax.amp.refine = [](const ir::Node& node, DType) -> std::optional<ir::AmpRefinement> {
    if (!FeedsLoss(node)) return std::nullopt;
    return ir::AmpRefinement{ir::AmpClass::kDeny,
                             "feeds a loss: log probabilities keep few digits in 16 bit"};
  };
  log_softmax.gradient = SoftmaxGradientBy("log_softmax_grad");
  log_softmax.gradient_ops = {"log_softmax_grad"};
  log_softmax.decompose = DecomposeLogSoftmax;
  AddOp(registry, std::move(log_softmax));

  ir::OpRecord softmax_grad = SoftmaxGradRecord("softmax_grad");
  softmax_grad.doc = "dx = y (dy - sum(y dy)) along the axis. Shapes: y, dy and dx alike.";
  softmax_grad.amp.reason = "gradient of softmax: the sum is f32 inside";
  softmax_grad.decompose = DecomposeSoftmaxGrad;
  AddOp(registry, std::move(softmax_grad));

  ir::OpRecord log_softmax_grad = SoftmaxGradRecord("log_softmax_grad");
  log_softmax_grad.doc = "dx = dy - exp(y) sum(dy) along the axis. Shapes: y, dy and dx alike.";
  log_softmax_grad.amp.reason = "gradient of log_softmax: the sum is f32 inside";
  log_softmax_grad.decompose = DecomposeLogSoftmaxGrad;
  AddOp(registry, std::move(log_softmax_grad));
}

}  // namespace halftone::ops
