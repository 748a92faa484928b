// conv2d_grad_input, conv2d_grad_weight, conv2d_grad_bias: the adjoints of conv2d in each operand.
#include "halftone/graph/ops/support/window.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

constexpr const char* kConvGradSource =
    "Dumoulin, Visin: \"A guide to convolution arithmetic for deep learning\", "
    "https://arxiv.org/abs/1603.07285, chapter 4";

ir::OpRecord ConvGradRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.source = kConvGradSource;
  r.attrs = ConvAttrs();
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.reason = "gradient of conv2d: matrix units multiply 16-bit operands and sum in f32";
  r.amp.accumulates_in_f32 = true;
  r.fusion = ir::FusionClass::kContraction;
  return r;
}

absl::Status CheckConvDy(const InferContext& ctx, int port, DType dtype, const ConvGeometry& g) {
  return CheckType(ctx, port, "dy", dtype, g.y_shape(), "type of conv2d's y");
}

Types InferConvGradInput(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "w", 4, 4));
  HT_ASSIGN_OR_RETURN(const Shape x, ShapeAttr(ctx, "shape", 4));
  HT_ASSIGN_OR_RETURN(const ConvGeometry g, InferConvGeometry(ctx, x, ctx.inputs[1].shape));
  HT_RETURN_IF_ERROR(CheckConvDy(ctx, 0, ctx.inputs[1].dtype, g));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, x}};
}

Types InferConvGradWeight(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 4, 4));
  HT_ASSIGN_OR_RETURN(const Shape w, ShapeAttr(ctx, "shape", 4));
  HT_ASSIGN_OR_RETURN(const ConvGeometry g, InferConvGeometry(ctx, ctx.inputs[0].shape, w));
  HT_RETURN_IF_ERROR(CheckConvDy(ctx, 1, ctx.inputs[0].dtype, g));
  HT_ASSIGN_OR_RETURN(const DType dtype, OutDType(ctx, ctx.inputs[0].dtype));
  return std::vector<ir::ValueType>{{dtype, w}};
}

Types InferConvGradBias(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "dy", 4, 4));
  HT_ASSIGN_OR_RETURN(const DType dtype, OutDType(ctx, ctx.inputs[0].dtype));
  return std::vector<ir::ValueType>{{dtype, Shape{ctx.inputs[0].shape.dim(1)}}};
}

// dx = T(dy, w) is linear in both: its adjoints are conv2d itself and the weight gradient.
void ConvGradInputGradient(ir::GradContext& ctx) {
  const Expr dy = ctx.in(0), w = ctx.in(1), g = ctx.dy(0);
  if (ctx.need(0)) {
    ctx.set_dx(0, ctx.b.Op("conv2d", {g, w}, ConvAttrsOf(ctx.attrs(), nullptr)));
  }
  if (ctx.need(1)) {
    ctx.set_dx(1, ctx.b.Op("conv2d_grad_weight", {g, dy}, ConvAttrsOf(ctx.attrs(), &w.shape())));
  }
}

void ConvGradWeightGradient(ir::GradContext& ctx) {
  const Expr x = ctx.in(0), dy = ctx.in(1), g = CastTo(ctx.dy(0), x.dtype());
  if (ctx.need(0)) {
    ctx.set_dx(0, ctx.b.Op("conv2d_grad_input", {dy, g}, ConvAttrsOf(ctx.attrs(), &x.shape())));
  }
  if (ctx.need(1)) {
    ctx.set_dx(1, ctx.b.Op("conv2d", {x, g}, ConvAttrsOf(ctx.attrs(), nullptr)));
  }
}

ir::Cost ConvGradCost(const ir::Node& node) {
  return {ConvGeometryOf(node).flops(), IoBytes(node)};
}

}  // namespace

void Register_conv2d_grad(ir::OpRegistry& registry) {
  ir::OpRecord input = ConvGradRecord("conv2d_grad_input");
  input.doc =
      "dx of conv2d: dx[n,c,h,w] = sum over o,k,l of dy[n,o,i,j] w[o,c,k,l] "
      "where i s - p + k d = h, j likewise. Also the transposed convolution. "
      "Shapes: dy [N,O,OH,OW], w [O,C/groups,kh,kw], dx `shape`.";
  input.inputs = {{"dy", ir::kFloats, "[N,O,OH,OW]"},
                  {"w", ir::kFloats, "[O,C/groups,kh,kw], dtype of dy"}};
  input.outputs = {{"dx", "[N,C,H,W], dtype of dy"}};
  input.attrs.push_back({"shape", ir::AttrType::kInts, std::nullopt, "extents of x"});
  input.infer = InferConvGradInput;
  input.amp.same_dtype_inputs = {0, 1};
  input.layout = {ir::LayoutClass::kChannelsLast, {0}, {0}};
  input.cost = ConvGradCost;
  input.gradient = ConvGradInputGradient;
  input.gradient_ops = {"conv2d", "conv2d_grad_weight"};
  AddOp(registry, std::move(input));

  ir::OpRecord weight = ConvGradRecord("conv2d_grad_weight");
  weight.doc =
      "dw of conv2d: dw[o,c,k,l] = sum over n,i,j "
      "of dy[n,o,i,j] x[n, c, i s - p + k d, j s - p + l d]. "
      "Shapes: x [N,C,H,W], dy [N,O,OH,OW], dw `shape`.";
  weight.inputs = {{"x", ir::kFloats, "[N,C,H,W]"}, {"dy", ir::kFloats, "[N,O,OH,OW], dtype of x"}};
  weight.outputs = {{"dw", "[O,C/groups,kh,kw]"}};
  weight.attrs.push_back({"shape", ir::AttrType::kInts, std::nullopt, "extents of w"});
  weight.attrs.push_back(OutAttr());
  weight.infer = InferConvGradWeight;
  weight.amp.same_dtype_inputs = {0, 1};
  weight.layout = {ir::LayoutClass::kChannelsLast, {0, 1}, {}};
  weight.cost = ConvGradCost;
  weight.gradient = ConvGradWeightGradient;
  weight.gradient_ops = {"conv2d_grad_input", "conv2d"};
  AddOp(registry, std::move(weight));

  ir::OpRecord bias = ConvGradRecord("conv2d_grad_bias");
  bias.doc = "db of conv2d: db[o] = sum over n,i,j of dy[n,o,i,j]. Shapes: dy [N,O,OH,OW], db [O].";
  bias.inputs = {{"dy", ir::kFloats, "[N,O,OH,OW]"}};
  bias.outputs = {{"db", "[O]"}};
  bias.attrs = {OutAttr()};
  bias.infer = InferConvGradBias;
  bias.amp.f16 = bias.amp.bf16 = ir::AmpClass::kInfer;
  bias.amp.reason = "gradient of a broadcast add: sums in f32 inside, follows its input";
  bias.fusion = ir::FusionClass::kReduction;
  bias.layout = {ir::LayoutClass::kChannelsLast, {0}, {}};
  bias.cost = FlopsPerInput(1);
  bias.decompose = [](ir::Builder& b, const std::vector<Expr>& in, const ir::Attributes& attrs) {
    return std::vector<Expr>{
        b.Op("sum", {in[0]}, {{"axes", Ints{0, 2, 3}}, {"out", attrs.GetString("out")}})};
  };
  AddOp(registry, std::move(bias));
}

}  // namespace halftone::ops
