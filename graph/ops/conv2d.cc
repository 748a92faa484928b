// conv2d: 2-D convolution (cross-correlation), grouped and dilated.
#include "halftone/graph/ops/support/window.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

Types InferConv2d(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 4, 4));
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "w", 4, 4));
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, 1, "w", 0, "x"));
  HT_ASSIGN_OR_RETURN(const ConvGeometry g,
                      InferConvGeometry(ctx, ctx.inputs[0].shape, ctx.inputs[1].shape));
  if (ctx.inputs.size() > 2) HT_RETURN_IF_ERROR(CheckBias(ctx, 2, ctx.inputs[0].dtype, g.o));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, g.y_shape()}};
}

void Conv2dGradient(ir::GradContext& ctx) {
  const Expr x = ctx.in(0), w = ctx.in(1), dy = ctx.dy(0);
  if (ctx.need(0)) {
    ctx.set_dx(0, ctx.b.Op("conv2d_grad_input", {dy, w}, ConvAttrsOf(ctx.attrs(), &x.shape())));
  }
  if (ctx.need(1)) {
    ctx.set_dx(1, ctx.b.Op("conv2d_grad_weight", {x, dy}, ConvAttrsOf(ctx.attrs(), &w.shape())));
  }
  if (ctx.node.num_inputs() > 2 && ctx.need(2)) {
    ctx.set_dx(
        2, ctx.b.Op("conv2d_grad_bias", {dy}, {{"out", WidenTo(x.dtype(), ctx.in(2).dtype())}}));
  }
}

std::optional<ir::AmpRefinement> RefineConv2d(const ir::Node& node, DType) {
  const int64_t groups = node.attrs().GetInt("groups");
  if (groups == 1 || groups != node.input_type(0).shape.dim(1)) return std::nullopt;
  return ir::AmpRefinement{ir::AmpClass::kInfer,
                           "depthwise: bound by memory, so 16 bit pays only beside 16 bit"};
}

}  // namespace

void Register_conv2d(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "conv2d";
  r.doc =
      "y[n,o,i,j] = b[o] + sum over c,k,l of x[n, c, i s - p + k d, j s - p + l d] w[o,c,k,l], "
      "c over the channels of o's group; values outside x are 0. "
      "Shapes: x [N,C,H,W], w [O,C/groups,kh,kw], b [O], "
      "y [N,O,OH,OW] with OH = floor((H + 2p - d (kh-1) - 1) / s) + 1, OW likewise. "
      "Sums in f32 (f64 for f64), rounded once.";
  r.source = "https://pytorch.org/docs/stable/generated/torch.nn.Conv2d.html";
  r.inputs = {{"x", ir::kFloats, "[N,C,H,W]"},
              {"w", ir::kFloats, "[O,C/groups,kh,kw], dtype of x"},
              {"b", ir::kFloats, "[O], dtype of x, or f32 for a 16-bit x", /*optional=*/true}};
  r.outputs = {{"y", "[N,O,OH,OW], dtype of x"}};
  r.attrs = ConvAttrs();
  r.infer = InferConv2d;
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.reason = "matrix units multiply 16-bit operands and sum in f32";
  r.amp.keep_f32_inputs = {2};
  r.amp.same_dtype_inputs = {0, 1};
  r.amp.accumulates_in_f32 = true;
  r.amp.refine = RefineConv2d;
  r.fusion = ir::FusionClass::kContraction;
  r.layout = {ir::LayoutClass::kChannelsLast, {0}, {0}};
  r.cost = [](const ir::Node& node) {
    const double bias =
        node.num_inputs() > 2 ? static_cast<double>(node.output_type().num_elements()) : 0;
    return ir::Cost{ConvGeometryOf(node).flops() + bias, IoBytes(node)};
  };
  r.gradient = Conv2dGradient;
  r.gradient_ops = {"conv2d_grad_input", "conv2d_grad_weight", "conv2d_grad_bias"};
  AddOp(registry, std::move(r));
}

}  // namespace halftone::ops
