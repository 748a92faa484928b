#include "halftone/graph/ops/support/window.h"

#include <algorithm>

namespace halftone::ops {

using ir::Attributes;
using ir::InferContext;

void SetOutput(WindowAxis& axis, bool ceil_mode) {
  const int64_t room = axis.input + 2 * axis.padding - axis.Span();
  if (room < 0) {
    axis.output = 0;
    return;
  }
  axis.output = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
  if (ceil_mode && (axis.output - 1) * axis.stride >= axis.input + axis.padding) --axis.output;
}

double ConvGeometry::flops() const {
  const double outputs = static_cast<double>(y_shape().num_elements());
  return 2 * outputs * static_cast<double>(c / groups * h.kernel * w.kernel);
}

namespace {

// Both axes from the attributes; `dilation` and `ceil_mode` may be absent from the record.
void SetWindow(const Attributes& attrs, int64_t kh, int64_t kw, WindowAxis& h, WindowAxis& w) {
  h.kernel = kh;
  w.kernel = kw;
  h.stride = attrs.GetInts("stride")[0];
  w.stride = attrs.GetInts("stride")[1];
  h.padding = attrs.GetInts("padding")[0];
  w.padding = attrs.GetInts("padding")[1];
  if (attrs.Has("dilation")) {
    h.dilation = attrs.GetInts("dilation")[0];
    w.dilation = attrs.GetInts("dilation")[1];
  }
}

absl::Status CheckWindowAttrs(const InferContext& ctx) {
  // Bounded so that no position overflows.
  constexpr int64_t kMax = int64_t{1} << 20;
  HT_RETURN_IF_ERROR(CheckInts(ctx, "stride", 2, 1, kMax));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "padding", 2, 0, kMax));
  if (ctx.attrs.Has("dilation")) HT_RETURN_IF_ERROR(CheckInts(ctx, "dilation", 2, 1, kMax));
  return absl::OkStatus();
}

// That at least one window fits and the result [n, channels, OH, OW] is a legal shape.
absl::Status CheckOutput(const InferContext& ctx, int64_t n, int64_t channels, const WindowAxis& h,
                         const WindowAxis& w) {
  if (h.output >= 1 && w.output >= 1) {
    return Annotate(Shape::Make({n, channels, h.output, w.output}).status(), ctx.op + ": y: ");
  }
  return InvalidArgument(ctx.op, ": the window of ", h.Span(), "x", w.Span(),
                         " does not fit the padded input of ", h.input + 2 * h.padding, "x",
                         w.input + 2 * w.padding, "; expected a smaller kernel or dilation");
}

}  // namespace

ConvGeometry ConvGeometryOf(const Attributes& attrs, const Shape& x, const Shape& w) {
  ConvGeometry g;
  g.n = x.dim(0);
  g.c = x.dim(1);
  g.o = w.dim(0);
  g.groups = attrs.GetInt("groups");
  g.h.input = x.dim(2);
  g.w.input = x.dim(3);
  SetWindow(attrs, w.dim(2), w.dim(3), g.h, g.w);
  SetOutput(g.h, false);
  SetOutput(g.w, false);
  return g;
}

PoolGeometry PoolGeometryOf(const Attributes& attrs, const Shape& x) {
  const bool ceil_mode = attrs.GetBool("ceil_mode");
  PoolGeometry g;
  g.n = x.dim(0);
  g.c = x.dim(1);
  g.h.input = x.dim(2);
  g.w.input = x.dim(3);
  SetWindow(attrs, attrs.GetInts("kernel")[0], attrs.GetInts("kernel")[1], g.h, g.w);
  SetOutput(g.h, ceil_mode);
  SetOutput(g.w, ceil_mode);
  return g;
}

absl::StatusOr<ConvGeometry> InferConvGeometry(const InferContext& ctx, const Shape& x,
                                               const Shape& w) {
  HT_RETURN_IF_ERROR(CheckWindowAttrs(ctx));
  const int64_t groups = ctx.attrs.GetInt("groups"), c = x.dim(1), o = w.dim(0);
  if (groups < 1 || c % groups != 0 || o % groups != 0) {
    return InvalidArgument(ctx.op, ": groups is ", groups, " for ", c, " input and ", o,
                           " output channels; expected a divisor of both");
  }
  if (w.dim(1) != c / groups) {
    return InvalidArgument(ctx.op, ": w is ", w.ToString(), " for x ", x.ToString(), " in ", groups,
                           " groups; expected [", o, ",", c / groups, ",kh,kw]");
  }
  if (w.dim(2) < 1 || w.dim(3) < 1) {
    return InvalidArgument(ctx.op, ": w is ", w.ToString(), "; expected a kernel of 1x1 or more");
  }
  ConvGeometry g = ConvGeometryOf(ctx.attrs, x, w);
  HT_RETURN_IF_ERROR(CheckOutput(ctx, g.n, g.o, g.h, g.w));
  return g;
}

absl::StatusOr<PoolGeometry> InferPoolGeometry(const InferContext& ctx, const Shape& x) {
  HT_RETURN_IF_ERROR(CheckWindowAttrs(ctx));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "kernel", 2, 1, int64_t{1} << 20));
  PoolGeometry g = PoolGeometryOf(ctx.attrs, x);
  for (const WindowAxis* axis : {&g.h, &g.w}) {
    if (2 * axis->padding > axis->Span()) {
      return InvalidArgument(ctx.op, ": padding is ", axis->padding, " for a window of ",
                             axis->Span(), "; expected at most half of the window");
    }
  }
  HT_RETURN_IF_ERROR(CheckOutput(ctx, g.n, g.c, g.h, g.w));
  return g;
}

ConvGeometry ConvGeometryOf(const ir::Node& node) {
  const std::string& op = node.op().name;
  if (op == "conv2d_grad_input") {
    return ConvGeometryOf(node.attrs(), node.output_type().shape, node.input_type(1).shape);
  }
  if (op == "conv2d_grad_weight") {
    return ConvGeometryOf(node.attrs(), node.input_type(0).shape, node.output_type().shape);
  }
  return ConvGeometryOf(node.attrs(), node.input_type(0).shape, node.input_type(1).shape);
}

PoolGeometry PoolGeometryOf(const ir::Node& node) {
  const Shape x =
      node.attrs().Has("shape") ? Shape(node.attrs().GetInts("shape")) : node.input_type(0).shape;
  return PoolGeometryOf(node.attrs(), x);
}

int64_t AveragePoolDivisor(const PoolGeometry& g, int64_t oh, int64_t ow, bool count_include_pad) {
  auto extent = [count_include_pad](const WindowAxis& axis, int64_t o) {
    const int64_t begin = axis.Position(o, 0), end = begin + axis.kernel;
    return count_include_pad ? std::min(end, axis.input + axis.padding) - begin
                             : std::min(end, axis.input) - std::max<int64_t>(begin, 0);
  };
  return extent(g.h, oh) * extent(g.w, ow);
}

std::vector<ir::AttrSpec> ConvAttrs() {
  return {{"stride", ir::AttrType::kInts, Ints{1, 1}, "step of the window: height, width"},
          {"padding", ir::AttrType::kInts, Ints{0, 0}, "zeros on both sides: height, width"},
          {"dilation", ir::AttrType::kInts, Ints{1, 1}, "distance of kernel points: height, width"},
          {"groups", ir::AttrType::kInt, int64_t{1},
           "independent blocks of channels; as many as channels: depthwise"},
          Tf32Attr(),
          DeterministicAttr(),
          WidenedAttr()};
}

std::vector<ir::AttrSpec> PoolAttrs() {
  return {{"kernel", ir::AttrType::kInts, std::nullopt, "window: height, width"},
          {"stride", ir::AttrType::kInts, std::nullopt, "step of the window: height, width"},
          {"padding", ir::AttrType::kInts, Ints{0, 0},
           "on both sides, at most half of the window: height, width"},
          {"ceil_mode", ir::AttrType::kBool, false,
           "also windows that reach beyond the end, if they start inside input or left padding"}};
}

Attributes ConvAttrsOf(const Attributes& attrs, const Shape* shape) {
  Attributes result;
  for (const char* name : {"stride", "padding", "dilation", "groups", "tf32", "deterministic"}) {
    result.Set(name, *attrs.Find(name));
  }
  if (shape != nullptr) result.Set("shape", Ints(shape->dims().begin(), shape->dims().end()));
  return result;
}

}  // namespace halftone::ops
