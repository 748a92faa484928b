// conv2d and conv3d: convolution (cross-correlation), grouped and dilated.
#include "halftone/graph/ops/support/window.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

Types InferConv(const InferContext& ctx, int dims) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", dims + 2, dims + 2));
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "w", dims + 2, dims + 2));
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, 1, "w", 0, "x"));
  HT_ASSIGN_OR_RETURN(const ConvGeometry g,
                      InferConvGeometry(ctx, ctx.inputs[0].shape, ctx.inputs[1].shape));
  if (ctx.inputs.size() > 2) HT_RETURN_IF_ERROR(CheckBias(ctx, 2, ctx.inputs[0].dtype, g.o));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, g.y_shape()}};
}

void ConvGradient(ir::GradContext& ctx, int dims) {
  const Expr x = ctx.in(0), w = ctx.in(1), dy = ctx.dy(0);
  if (ctx.need(0)) {
    ctx.set_dx(
        0, ctx.b.Op(ConvOp(dims, "_grad_input"), {dy, w}, ConvAttrsOf(ctx.attrs(), &x.shape())));
  }
  if (ctx.need(1)) {
    ctx.set_dx(
        1, ctx.b.Op(ConvOp(dims, "_grad_weight"), {x, dy}, ConvAttrsOf(ctx.attrs(), &w.shape())));
  }
  if (ctx.node.num_inputs() > 2 && ctx.need(2)) {
    ctx.set_dx(2, ctx.b.Op(ConvOp(dims, "_grad_bias"), {dy},
                           {{"out", WidenTo(x.dtype(), ctx.in(2).dtype())}}));
  }
}

std::optional<ir::AmpRefinement> RefineConv(const ir::Node& node, DType) {
  const int64_t groups = node.attrs().GetInt("groups");
  if (groups == 1 || groups != node.input_type(0).shape.dim(1)) return std::nullopt;
  return ir::AmpRefinement{ir::AmpClass::kInfer,
                           "depthwise: bound by memory, so 16 bit pays only beside 16 bit"};
}

ir::OpRecord ConvRecord(int dims) {
  const ConvNames names(dims);
  ir::OpRecord r;
  r.name = names.op;
  r.doc = Concat(
      "y[n,o,i] = b[o] + sum over c,k of x[n, c, i s - p + k d] w[o,c,k]; i and k are positions "
      "along ",
      dims, " axes, c is over the channels of o's group; values outside x are 0. Shapes: x ",
      names.x, ", w ", names.w, ", b [O], y ", names.y,
      " with OH = floor((H + 2p - d (kh-1) - 1) / s) + 1, the others likewise. ",
      "Sums in f32 (f64 for f64), rounded once.");
  r.source = Concat("https://pytorch.org/docs/stable/generated/torch.nn.Conv", dims, "d.html");
  r.inputs = {{"x", ir::kFloats, names.x},
              {"w", ir::kFloats, names.w + ", dtype of x"},
              {"b", ir::kFloats, "[O], dtype of x, or f32 for a 16-bit x", /*optional=*/true}};
  r.outputs = {{"y", names.y + ", dtype of x"}};
  r.attrs = ConvAttrs(dims);
  r.attrs.push_back(PackedAttr());
  r.infer = [dims](const InferContext& ctx) { return InferConv(ctx, dims); };
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.reason = "matrix units multiply 16-bit operands and sum in f32";
  r.amp.keep_f32_inputs = {2};
  r.amp.same_dtype_inputs = {0, 1};
  r.amp.accumulates_in_f32 = true;
  r.amp.refine = RefineConv;
  r.fusion = ir::FusionClass::kContraction;
  r.layout = {ir::LayoutClass::kChannelsLast, {0}, {0}, true};
  r.cost = [](const ir::Node& node) {
    const double bias =
        node.num_inputs() > 2 ? static_cast<double>(node.output_type().num_elements()) : 0;
    return ir::Cost{ConvGeometryOf(node).flops() + bias, IoBytes(node)};
  };
  r.gradient = [dims](ir::GradContext& ctx) { ConvGradient(ctx, dims); };
  for (const char* operand : {"_grad_input", "_grad_weight", "_grad_bias"}) {
    r.gradient_ops.push_back(ConvOp(dims, operand));
  }
  return r;
}

}  // namespace

void Register_conv(ir::OpRegistry& registry) {
  for (const int dims : kConvDims) AddOp(registry, ConvRecord(dims));
}

}  // namespace halftone::ops
