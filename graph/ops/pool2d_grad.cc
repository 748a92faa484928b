// max_pool2d_grad and avg_pool2d_grad.
#include "halftone/graph/ops/support/window.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

ir::OpRecord PoolGradRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.outputs = {{"dx", "[N,C,H,W], dtype of dy"}};
  r.attrs = PoolAttrs();
  r.attrs.push_back({"shape", ir::AttrType::kInts, std::nullopt, "extents of x"});
  r.amp.accumulates_in_f32 = true;
  return r;
}

absl::StatusOr<PoolGeometry> InferPoolGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const Shape x, ShapeAttr(ctx, "shape", 4));
  HT_ASSIGN_OR_RETURN(const PoolGeometry g, InferPoolGeometry(ctx, x));
  HT_RETURN_IF_ERROR(
      CheckType(ctx, 0, "dy", ctx.inputs[0].dtype, g.y_shape(), "shape of the pooling's y"));
  return g;
}

Types InferMaxPoolGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const PoolGeometry g, InferPoolGrad(ctx));
  HT_RETURN_IF_ERROR(
      CheckType(ctx, 1, "index", MaxPoolIndexDType(g), g.y_shape(), "type of max_pool2d's index"));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, g.x_shape()}};
}

// Where in a plane of x the maximum of each window lies: its offset as a flat position, i64 [N,C,OH,OW].
// The top left corner of a window may lie in the padding, its maximum does not.
Expr FlatPositions(ir::Builder& b, const PoolGeometry& g, Expr index) {
  Tensor corners = Tensor::Empty(DType::kI64, {g.h.output, g.w.output});
  for (int64_t i = 0; i < g.h.output; ++i) {
    for (int64_t j = 0; j < g.w.output; ++j) {
      corners.set(i * g.w.output + j,
                  static_cast<double>(g.h.Position(i, 0) * g.w.input + g.w.Position(j, 0)));
    }
  }
  Tensor steps = Tensor::Empty(DType::kI64, {g.h.kernel * g.w.kernel});
  for (int64_t k = 0; k < g.h.kernel; ++k) {
    for (int64_t l = 0; l < g.w.kernel; ++l) {
      steps.set(k * g.w.kernel + l,
                static_cast<double>(k * g.h.dilation * g.w.input + l * g.w.dilation));
    }
  }
  return b.Op("gather", {b.Constant(steps), CastTo(index, DType::kI64)}) + b.Constant(corners);
}

// The adjoint of adding at positions is reading there.
void MaxPoolGradGradient(ir::GradContext& ctx) {
  if (!ctx.need(0)) return;
  const PoolGeometry g = PoolGeometryOf(ctx.node);
  const Expr planes = ReshapeTo(ctx.dy(0), Shape{g.n, g.c, g.h.input * g.w.input});
  const Expr positions =
      ReshapeTo(FlatPositions(ctx.b, g, ctx.in(1)), Shape{g.n, g.c, g.h.output * g.w.output});
  const Expr picked = ctx.b.Op("take_along_dim", {planes, positions}, {{"axis", int64_t{2}}});
  ctx.set_dx(0, ReshapeTo(picked, g.y_shape()));
}

Types InferAvgPoolGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const PoolGeometry g, InferPoolGrad(ctx));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, g.x_shape()}};
}

}  // namespace

void Register_pool2d_grad(ir::OpRegistry& registry) {
  ir::OpRecord max = PoolGradRecord("max_pool2d_grad");
  max.doc =
      "dx of max_pool2d: each dy is added at the position its index names; "
      "overlapping windows sum in f32 (f64 for f64). Shapes: dy and index [N,C,OH,OW], dx `shape`.";
  max.source =
      "adjoint of max_pool2d; https://pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html";
  max.inputs = {{"dy", ir::kFloats, "[N,C,OH,OW]"},
                {"index", {DType::kU8, DType::kI32}, "second output of max_pool2d"}};
  max.attrs.push_back(
      {"dilation", ir::AttrType::kInts, Ints{1, 1}, "distance of window points: height, width"});
  max.infer = InferMaxPoolGrad;
  max.amp.f16 = max.amp.bf16 = ir::AmpClass::kClear;
  max.amp.reason = "moves values; overlapping windows sum in f32 inside";
  max.layout = {ir::LayoutClass::kChannelsLast, {0, 1}, {0}, true};
  max.gradient = MaxPoolGradGradient;
  max.gradient_ops = {"gather", "cast", "add", "reshape", "take_along_dim"};
  AddOp(registry, std::move(max));

  ir::OpRecord avg = PoolGradRecord("avg_pool2d_grad");
  avg.doc =
      "dx of avg_pool2d: each dy divided by its window's divisor "
      "is added to the window's positions, summed in f32 (f64 for f64). "
      "Shapes: dy [N,C,OH,OW], dx `shape`.";
  avg.source =
      "adjoint of avg_pool2d; https://pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html";
  avg.inputs = {{"dy", ir::kFloats, "[N,C,OH,OW]"}};
  avg.attrs.push_back(
      {"count_include_pad", ir::AttrType::kBool, true, "padding counts in the divisor"});
  avg.attrs.push_back(WidenedAttr());
  avg.infer = InferAvgPoolGrad;
  avg.amp.f16 = avg.amp.bf16 = ir::AmpClass::kInfer;
  avg.amp.reason = "gradient of a window mean: sums in f32 inside";
  avg.layout = {ir::LayoutClass::kChannelsLast, {0}, {0}, true};
  avg.gradient = [](ir::GradContext& ctx) {
    if (!ctx.need(0)) return;
    ir::Attributes attrs = ctx.attrs();
    attrs.Erase("shape");
    ctx.set_dx(0, ctx.b.Op("avg_pool2d", {ctx.dy(0)}, attrs));
  };
  avg.gradient_ops = {"avg_pool2d"};
  AddOp(registry, std::move(avg));
}

}  // namespace halftone::ops
