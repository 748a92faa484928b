// max_pool2d and avg_pool2d.
#include "halftone/graph/ops/support/window.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

// The gradient op gets the attributes of the pooling and the extents of x.
ir::Attributes PoolGradAttrs(const ir::GradContext& ctx) {
  ir::Attributes attrs = ctx.attrs();
  const absl::Span<const int64_t> dims = ctx.node.input_type(0).shape.dims();
  attrs.Set("shape", Ints(dims.begin(), dims.end()));
  return attrs;
}

ir::OpRecord PoolRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.inputs = {{"x", ir::kFloats, "[N,C,H,W]"}};
  r.attrs = PoolAttrs();
  r.cost = [](const ir::Node& node) {
    const PoolGeometry g = PoolGeometryOf(node);
    const double outputs = static_cast<double>(g.y_shape().num_elements());
    return ir::Cost{outputs * static_cast<double>(g.h.kernel * g.w.kernel), IoBytes(node)};
  };
  return r;
}

Types InferMaxPool(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 4, 4));
  HT_ASSIGN_OR_RETURN(const PoolGeometry g, InferPoolGeometry(ctx, ctx.inputs[0].shape));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, g.y_shape()},
                                    {MaxPoolIndexDType(g), g.y_shape()}};
}

Types InferAvgPool(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "x", 4, 4));
  HT_ASSIGN_OR_RETURN(const PoolGeometry g, InferPoolGeometry(ctx, ctx.inputs[0].shape));
  return std::vector<ir::ValueType>{{ctx.inputs[0].dtype, g.y_shape()}};
}

}  // namespace

void Register_pool2d(ir::OpRegistry& registry) {
  ir::OpRecord max = PoolRecord("max_pool2d");
  max.doc =
      "y[n,c,i,j] = max over k,l of x[n, c, i s - p + k d, j s - p + l d], "
      "positions outside x left out; NaN wins. index = k kw + l of the first maximum. "
      "Shapes: x [N,C,H,W], y and index [N,C,OH,OW] "
      "with OH = floor((H + 2p - d (kh-1) - 1) / s) + 1 (ceil under ceil_mode).";
  max.source = "https://pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html";
  max.outputs = {{"y", "[N,C,OH,OW], dtype of x"},
                 {"index", "offset in the window; u8 up to 256 offsets, else i32"}};
  max.attrs.push_back(
      {"dilation", ir::AttrType::kInts, Ints{1, 1}, "distance of window points: height, width"});
  max.infer = InferMaxPool;
  max.amp.f16 = max.amp.bf16 = ir::AmpClass::kClear;
  max.amp.reason = "picks values: exact in any dtype";
  max.layout = {ir::LayoutClass::kChannelsLast, {0}, {0, 1}, true};
  max.gradient = [](ir::GradContext& ctx) {
    if (!ctx.need(0)) return;
    ctx.set_dx(0, ctx.b.Op("max_pool2d_grad", {ctx.dy(0), ctx.out(1)}, PoolGradAttrs(ctx)));
  };
  max.gradient_ops = {"max_pool2d_grad"};
  AddOp(registry, std::move(max));

  ir::OpRecord avg = PoolRecord("avg_pool2d");
  avg.doc =
      "y[n,c,i,j] = sum over the window of x / divisor; outside x counts as 0. "
      "The divisor is the part of the window inside input and padding, "
      "or inside the input if count_include_pad is false. Shapes as max_pool2d. "
      "Sums in f32 (f64 for f64).";
  avg.source = "https://pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html";
  avg.outputs = {{"y", "[N,C,OH,OW], dtype of x"}};
  avg.attrs.push_back(
      {"count_include_pad", ir::AttrType::kBool, true, "padding counts in the divisor"});
  avg.attrs.push_back(WidenedAttr());
  avg.infer = InferAvgPool;
  avg.amp.f16 = avg.amp.bf16 = ir::AmpClass::kInfer;
  avg.amp.reason = "the average fits wherever the values do; the window sum is f32 inside";
  avg.amp.accumulates_in_f32 = true;
  // With the padding.
  avg.range = [](const ir::Node&, const std::vector<ir::ValueRange>& in) {
    return Either(in[0], ir::ValueRange::Between(0, 0));
  };
  avg.layout = {ir::LayoutClass::kChannelsLast, {0}, {0}, true};
  avg.gradient = [](ir::GradContext& ctx) {
    if (ctx.need(0)) ctx.set_dx(0, ctx.b.Op("avg_pool2d_grad", {ctx.dy(0)}, PoolGradAttrs(ctx)));
  };
  avg.gradient_ops = {"avg_pool2d_grad"};
  AddOp(registry, std::move(avg));
}

}  // namespace halftone::ops
