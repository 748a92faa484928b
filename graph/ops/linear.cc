// linear: a fully connected layer.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

Types InferLinear(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 1, kMaxRank));
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "w", 2, 2));
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, 1, "w", 0, "x"));
  const ir::ValueType &x = ctx.inputs[0], &w = ctx.inputs[1];
  if (x.shape.dim(x.shape.rank() - 1) != w.shape.dim(1)) {
    return InvalidArgument(ctx.op, ": inner sizes differ: x ", x.ToString(), ", w ", w.ToString(),
                           "; expected w to be [out, ", x.shape.dim(x.shape.rank() - 1), "]");
  }
  const int64_t out = w.shape.dim(0);
  if (ctx.inputs.size() > 2) {
    HT_RETURN_IF_ERROR(CheckBias(ctx, 2, x.dtype, out));
  }
  Ints dims(x.shape.dims().begin(), x.shape.dims().end());
  dims.back() = out;
  HT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return std::vector<ir::ValueType>{{x.dtype, shape}};
}

Expr AsMatrix(Expr x) {
  if (!x.valid()) return x;
  const int rank = x.shape().rank();
  const int64_t columns = x.shape().dim(rank - 1);
  int64_t rows = 1;
  for (int i = 0; i + 1 < rank; ++i) rows *= x.shape().dim(i);
  return ReshapeTo(x, {rows, columns});
}

void LinearGradient(ir::GradContext& ctx) {
  ir::Builder& b = ctx.b;
  const Expr x = ctx.in(0), w = ctx.in(1), dy = ctx.dy(0);
  const Expr dy2d = AsMatrix(dy);
  if (ctx.need(0)) ctx.set_dx(0, ReshapeTo(b.Op("matmul", {dy2d, w}), x.shape()));
  if (ctx.need(1)) {
    ctx.set_dx(1, b.Op("matmul", {dy2d, AsMatrix(x)}, {{"transpose_a", true}}));
  }
  if (ctx.node.num_inputs() > 2 && ctx.need(2)) {
    ctx.set_dx(2, b.Op("sum", {dy2d},
                       {{"axes", Ints{0}}, {"out", WidenTo(x.dtype(), ctx.in(2).dtype())}}));
  }
}

std::vector<Expr> DecomposeLinear(ir::Builder& b, const std::vector<Expr>& in,
                                  const ir::Attributes&) {
  Ints dims(in[0].shape().dims().begin(), in[0].shape().dims().end());
  dims.back() = in[1].shape().dim(0);
  Expr y =
      ReshapeTo(b.Op("matmul", {AsMatrix(in[0]), in[1]}, {{"transpose_b", true}}), Shape(dims));
  if (in.size() > 2) y = y + b.Cast(in[2], in[0].dtype());
  return {y};
}

ir::Cost LinearCost(const ir::Node& node) {
  const double outputs = static_cast<double>(node.output_type().num_elements());
  const double inner = static_cast<double>(node.input_type(1).shape.dim(1));
  return {outputs * (2 * inner + (node.num_inputs() > 2 ? 1 : 0)), IoBytes(node)};
}

}  // namespace

void Register_linear(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "linear";
  r.doc =
      "y = x w^T + b over the last axis. Shapes: x [..., in], w [out, in], b [out], y [..., out]. "
      "Products and bias are summed in f32 (f64 for f64) and rounded once.";
  r.source = "https://pytorch.org/docs/stable/generated/torch.nn.Linear.html";
  r.inputs = {{"x", ir::kFloats, "[..., in]"},
              {"w", ir::kFloats, "[out, in], dtype of x"},
              {"b", ir::kFloats, "[out], dtype of x, or f32 for a 16-bit x", /*optional=*/true}};
  r.outputs = {{"y", "[..., out], dtype of x"}};
  r.attrs = {Tf32Attr(), WidenedAttr(), PackedAttr()};
  r.infer = InferLinear;
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.reason = "matrix units multiply 16-bit operands and sum in f32";
  r.amp.keep_f32_inputs = {2};
  r.amp.same_dtype_inputs = {0, 1};
  r.amp.accumulates_in_f32 = true;
  r.amp.in_f8 = [](const ir::Node&) { return ir::Attributes{{"transpose_b", true}}; };
  r.fusion = ir::FusionClass::kContraction;
  r.cost = LinearCost;
  r.gradient = LinearGradient;
  r.gradient_ops = {"matmul", "sum", "reshape"};
  r.decompose = DecomposeLinear;
  AddOp(registry, std::move(r));
}

}  // namespace halftone::ops
