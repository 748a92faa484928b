// The adjoints of conv2d and conv3d in each operand: conv2d_grad_input, conv2d_grad_weight,
// conv2d_grad_bias and those of conv3d.
#include "halftone/graph/ops/support/window.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

constexpr const char* kConvGradSource =
    "Dumoulin, Visin: \"A guide to convolution arithmetic for deep learning\", "
    "https://arxiv.org/abs/1603.07285, chapter 4";

ir::OpRecord ConvGradRecord(int dims, const char* operand) {
  ir::OpRecord r;
  r.name = ConvOp(dims, operand);
  r.source = kConvGradSource;
  r.attrs = ConvAttrs(dims);
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.reason = Concat("gradient of ", ConvOp(dims),
                        ": matrix units multiply 16-bit operands and sum in f32");
  r.amp.accumulates_in_f32 = true;
  r.fusion = ir::FusionClass::kContraction;
  return r;
}

absl::Status CheckConvDy(const InferContext& ctx, int port, DType dtype, const ConvGeometry& g) {
  return CheckType(ctx, port, "dy", dtype, g.y_shape(), Concat("type of ", ConvOp(g.dims), "'s y"));
}

Types InferConvGradInput(const InferContext& ctx, int dims) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "w", dims + 2, dims + 2));
  HT_ASSIGN_OR_RETURN(const Shape x, ShapeAttr(ctx, "shape", dims + 2));
  HT_ASSIGN_OR_RETURN(const ConvGeometry g, InferConvGeometry(ctx, x, ctx.inputs[1].shape));
  HT_RETURN_IF_ERROR(CheckConvDy(ctx, 0, ctx.inputs[1].dtype, g));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, x}};
}

Types InferConvGradWeight(const InferContext& ctx, int dims) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", dims + 2, dims + 2));
  HT_ASSIGN_OR_RETURN(const Shape w, ShapeAttr(ctx, "shape", dims + 2));
  HT_ASSIGN_OR_RETURN(const ConvGeometry g, InferConvGeometry(ctx, ctx.inputs[0].shape, w));
  HT_RETURN_IF_ERROR(CheckConvDy(ctx, 1, ctx.inputs[0].dtype, g));
  HT_ASSIGN_OR_RETURN(const DType dtype, OutDType(ctx, ctx.inputs[0].dtype));
  return std::vector<ir::ValueType>{{dtype, w}};
}

Types InferConvGradBias(const InferContext& ctx, int dims) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "dy", dims + 2, dims + 2));
  HT_ASSIGN_OR_RETURN(const DType dtype, OutDType(ctx, ctx.inputs[0].dtype));
  return std::vector<ir::ValueType>{{dtype, Shape{ctx.inputs[0].shape.dim(1)}}};
}

// dx = T(dy, w) is linear in both: its adjoints are the convolution itself and the weight gradient.
void ConvGradInputGradient(ir::GradContext& ctx, int dims) {
  const Expr dy = ctx.in(0), w = ctx.in(1), g = ctx.dy(0);
  if (ctx.need(0)) {
    ctx.set_dx(0, ctx.b.Op(ConvOp(dims), {g, w}, ConvAttrsOf(ctx.attrs(), nullptr)));
  }
  if (ctx.need(1)) {
    ctx.set_dx(
        1, ctx.b.Op(ConvOp(dims, "_grad_weight"), {g, dy}, ConvAttrsOf(ctx.attrs(), &w.shape())));
  }
}

void ConvGradWeightGradient(ir::GradContext& ctx, int dims) {
  const Expr x = ctx.in(0), dy = ctx.in(1), g = CastTo(ctx.dy(0), x.dtype());
  if (ctx.need(0)) {
    ctx.set_dx(
        0, ctx.b.Op(ConvOp(dims, "_grad_input"), {dy, g}, ConvAttrsOf(ctx.attrs(), &x.shape())));
  }
  if (ctx.need(1)) {
    ctx.set_dx(1, ctx.b.Op(ConvOp(dims), {x, g}, ConvAttrsOf(ctx.attrs(), nullptr)));
  }
}

ir::Cost ConvGradCost(const ir::Node& node) {
  return {ConvGeometryOf(node).flops(), IoBytes(node)};
}

ir::OpRecord GradInputRecord(int dims) {
  const ConvNames names(dims);
  ir::OpRecord r = ConvGradRecord(dims, "_grad_input");
  r.doc = Concat("dx of ", names.op,
                 ": dx[n,c,h] = sum over o,k of dy[n,o,i] w[o,c,k] where i s - p + k d = h along "
                 "every axis. Also the transposed convolution. Shapes: dy ",
                 names.y, ", w ", names.w, ", dx `shape`.");
  r.inputs = {{"dy", ir::kFloats, names.y}, {"w", ir::kFloats, names.w + ", dtype of dy"}};
  r.outputs = {{"dx", names.x + ", dtype of dy"}};
  r.attrs.push_back({"shape", ir::AttrType::kInts, std::nullopt, "extents of x"});
  r.attrs.push_back(PackedAttr());
  r.infer = [dims](const InferContext& ctx) { return InferConvGradInput(ctx, dims); };
  r.amp.same_dtype_inputs = {0, 1};
  r.layout = {ir::LayoutClass::kChannelsLast, {0}, {0}, true};
  r.cost = ConvGradCost;
  r.gradient = [dims](ir::GradContext& ctx) { ConvGradInputGradient(ctx, dims); };
  r.gradient_ops = {names.op, ConvOp(dims, "_grad_weight")};
  return r;
}

ir::OpRecord GradWeightRecord(int dims) {
  const ConvNames names(dims);
  ir::OpRecord r = ConvGradRecord(dims, "_grad_weight");
  r.doc = Concat("dw of ", names.op,
                 ": dw[o,c,k] = sum over n,i of dy[n,o,i] x[n, c, i s - p + k d]. Shapes: x ",
                 names.x, ", dy ", names.y, ", dw `shape`.");
  r.inputs = {{"x", ir::kFloats, names.x}, {"dy", ir::kFloats, names.y + ", dtype of x"}};
  r.outputs = {{"dw", names.w}};
  r.attrs.push_back({"shape", ir::AttrType::kInts, std::nullopt, "extents of w"});
  r.attrs.push_back(OutAttr());
  r.attrs.push_back(
      Optional("low_result", false,
               "set by apply-numerics: the result of 16-bit operands stays in 16 bit, "
               "and no cast is absorbed"));
  r.infer = [dims](const InferContext& ctx) { return InferConvGradWeight(ctx, dims); };
  r.amp.same_dtype_inputs = {0, 1};
  r.layout = {ir::LayoutClass::kChannelsLast, {0, 1}, {}, true};
  r.cost = ConvGradCost;
  r.gradient = [dims](ir::GradContext& ctx) { ConvGradWeightGradient(ctx, dims); };
  r.gradient_ops = {ConvOp(dims, "_grad_input"), names.op};
  return r;
}

ir::OpRecord GradBiasRecord(int dims) {
  const ConvNames names(dims);
  ir::OpRecord r = ConvGradRecord(dims, "_grad_bias");
  r.doc = Concat("db of ", names.op, ": db[o] = sum over n,i of dy[n,o,i]. Shapes: dy ", names.y,
                 ", db [O].");
  r.inputs = {{"dy", ir::kFloats, names.y}};
  r.outputs = {{"db", "[O]"}};
  r.attrs = {OutAttr()};
  r.infer = [dims](const InferContext& ctx) { return InferConvGradBias(ctx, dims); };
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kInfer;
  r.amp.reason = "gradient of a broadcast add: sums in f32 inside, follows its input";
  r.fusion = ir::FusionClass::kReduction;
  r.layout = {ir::LayoutClass::kChannelsLast, {0}, {}, true};
  r.cost = FlopsPerInput(1);
  r.decompose = [dims](ir::Builder& b, const std::vector<Expr>& in, const ir::Attributes& attrs) {
    return std::vector<Expr>{
        b.Op("sum", {in[0]}, {{"axes", AxesBut(dims + 2, 1)}, {"out", attrs.GetString("out")}})};
  };
  return r;
}

}  // namespace

void Register_conv_grad(ir::OpRegistry& registry) {
  for (const int dims : kConvDims) {
    AddOp(registry, GradInputRecord(dims));
    AddOp(registry, GradWeightRecord(dims));
    AddOp(registry, GradBiasRecord(dims));
  }
}

}  // namespace halftone::ops
