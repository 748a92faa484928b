#include "halftone/graph/ops/support/window.h"

#include <algorithm>
#include <string_view>

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

namespace {

// [a, b, extent of each spatial axis].
Shape WithAxes(int64_t a, int64_t b, const ConvGeometry& g, int64_t WindowAxis::*extent) {
  return g.dims == 3 ? Shape{a, b, g.d.*extent, g.h.*extent, g.w.*extent}
                     : Shape{a, b, g.h.*extent, g.w.*extent};
}

}  // namespace

Shape ConvGeometry::x_shape() const { return WithAxes(n, c, *this, &WindowAxis::input); }
Shape ConvGeometry::w_shape() const { return WithAxes(o, c / groups, *this, &WindowAxis::kernel); }
Shape ConvGeometry::y_shape() const { return WithAxes(n, o, *this, &WindowAxis::output); }

absl::InlinedVector<const WindowAxis*, 3> ConvGeometry::axes() const {
  if (dims == 3) return {&d, &h, &w};
  return {&h, &w};
}

double ConvGeometry::flops() const {
  const double outputs = static_cast<double>(y_shape().num_elements());
  return 2 * outputs * static_cast<double>(c / groups * d.kernel * h.kernel * w.kernel);
}

namespace {

// The axes from the attributes, of extents `input` and a window of extents `kernel`; `dilation` may
// be absent from the record.
void SetWindow(const Attributes& attrs, absl::Span<const int64_t> input,
               absl::Span<const int64_t> kernel, bool ceil_mode,
               std::initializer_list<WindowAxis*> axes) {
  size_t i = 0;
  for (WindowAxis* axis : axes) {
    axis->input = input[i];
    axis->kernel = kernel[i];
    axis->stride = attrs.GetInts("stride")[i];
    axis->padding = attrs.GetInts("padding")[i];
    if (attrs.Has("dilation")) axis->dilation = attrs.GetInts("dilation")[i];
    SetOutput(*axis, ceil_mode);
    ++i;
  }
}

absl::Status CheckWindowAttrs(const InferContext& ctx, int dims) {
  // Bounded so that no position overflows.
  constexpr int64_t kMax = int64_t{1} << 20;
  HT_RETURN_IF_ERROR(CheckInts(ctx, "stride", dims, 1, kMax));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "padding", dims, 0, kMax));
  if (ctx.attrs.Has("dilation")) HT_RETURN_IF_ERROR(CheckInts(ctx, "dilation", dims, 1, kMax));
  return absl::OkStatus();
}

// That at least one window fits and the result [n, channels, ..] is a legal shape.
absl::Status CheckOutput(const InferContext& ctx, int64_t n, int64_t channels,
                         absl::Span<const WindowAxis* const> axes) {
  std::vector<int64_t> y = {n, channels};
  std::string window, room;
  bool fits = true;
  for (const WindowAxis* axis : axes) {
    const char* const x = window.empty() ? "" : "x";
    window += Concat(x, axis->Span());
    room += Concat(x, axis->input + 2 * axis->padding);
    y.push_back(axis->output);
    fits = fits && axis->output >= 1;
  }
  if (fits) return Annotate(Shape::Make(y).status(), ctx.op + ": y: ");
  return InvalidArgument(ctx.op, ": the window of ", window, " does not fit the padded input of ",
                         room, "; expected a smaller kernel or dilation");
}

}  // namespace

ConvGeometry ConvGeometryOf(const Attributes& attrs, const Shape& x, const Shape& w) {
  ConvGeometry g;
  g.dims = x.rank() - 2;
  g.n = x.dim(0);
  g.c = x.dim(1);
  g.o = w.dim(0);
  g.groups = attrs.GetInt("groups");
  const auto input = x.dims().subspan(2), kernel = w.dims().subspan(2);
  if (g.dims == 3) {
    SetWindow(attrs, input, kernel, false, {&g.d, &g.h, &g.w});
  } else {
    g.d.input = g.d.output = 1;
    SetWindow(attrs, input, kernel, false, {&g.h, &g.w});
  }
  return g;
}

PoolGeometry PoolGeometryOf(const Attributes& attrs, const Shape& x) {
  PoolGeometry g;
  g.n = x.dim(0);
  g.c = x.dim(1);
  SetWindow(attrs, x.dims().subspan(2), attrs.GetInts("kernel"), attrs.GetBool("ceil_mode"),
            {&g.h, &g.w});
  return g;
}

absl::StatusOr<ConvGeometry> InferConvGeometry(const InferContext& ctx, const Shape& x,
                                               const Shape& w) {
  const int dims = x.rank() - 2;
  const char* const kernel = dims == 3 ? ",kd,kh,kw]" : ",kh,kw]";
  HT_RETURN_IF_ERROR(CheckWindowAttrs(ctx, dims));
  const int64_t groups = ctx.attrs.GetInt("groups"), c = x.dim(1), o = w.dim(0);
  if (groups < 1 || c % groups != 0 || o % groups != 0) {
    return InvalidArgument(ctx.op, ": groups is ", groups, " for ", c, " input and ", o,
                           " output channels; expected a divisor of both");
  }
  if (w.dim(1) != c / groups) {
    return InvalidArgument(ctx.op, ": w is ", w.ToString(), " for x ", x.ToString(), " in ", groups,
                           " groups; expected [", o, ",", c / groups, kernel);
  }
  for (const int64_t extent : w.dims().subspan(2)) {
    if (extent >= 1) continue;
    return InvalidArgument(ctx.op, ": w is ", w.ToString(), "; expected a kernel of ",
                           dims == 3 ? "1x1x1" : "1x1", " or more");
  }
  ConvGeometry g = ConvGeometryOf(ctx.attrs, x, w);
  HT_RETURN_IF_ERROR(CheckOutput(ctx, g.n, g.o, g.axes()));
  return g;
}

absl::StatusOr<PoolGeometry> InferPoolGeometry(const InferContext& ctx, const Shape& x) {
  HT_RETURN_IF_ERROR(CheckWindowAttrs(ctx, 2));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "kernel", 2, 1, int64_t{1} << 20));
  PoolGeometry g = PoolGeometryOf(ctx.attrs, x);
  for (const WindowAxis* axis : {&g.h, &g.w}) {
    if (2 * axis->padding > axis->Span()) {
      return InvalidArgument(ctx.op, ": padding is ", axis->padding, " for a window of ",
                             axis->Span(), "; expected at most half of the window");
    }
  }
  HT_RETURN_IF_ERROR(CheckOutput(ctx, g.n, g.c, {&g.h, &g.w}));
  return g;
}

ConvGeometry ConvGeometryOf(const ir::Node& node) {
  const std::string_view op = node.op().name;
  if (op.ends_with("_grad_input")) {
    return ConvGeometryOf(node.attrs(), node.output_type().shape, node.input_type(1).shape);
  }
  if (op.ends_with("_grad_weight")) {
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

std::string ConvOp(int dims, const char* suffix) { return Concat("conv", dims, "d", suffix); }

ConvNames::ConvNames(int dims)
    : op(ConvOp(dims)),
      x(dims == 3 ? "[N,C,D,H,W]" : "[N,C,H,W]"),
      w(dims == 3 ? "[O,C/groups,kd,kh,kw]" : "[O,C/groups,kh,kw]"),
      y(dims == 3 ? "[N,O,OD,OH,OW]" : "[N,O,OH,OW]") {}

std::vector<ir::AttrSpec> ConvAttrs(int dims) {
  const std::string axes = dims == 3 ? ": depth, height, width" : ": height, width";
  const Ints ones(dims, 1), zeros(dims, 0);
  return {{"stride", ir::AttrType::kInts, ones, "step of the window" + axes},
          {"padding", ir::AttrType::kInts, zeros, "zeros on both sides" + axes},
          {"dilation", ir::AttrType::kInts, ones, "distance of kernel points" + axes},
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
