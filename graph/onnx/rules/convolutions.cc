// Convolutions along one to three axes, and their transposes.
#include <algorithm>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/windows.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// "conv2d" for one or two axes, "conv3d" for three; "" for others.
std::string OpOf(size_t dims) {
  return dims == 1 || dims == 2 ? "conv2d" : dims == 3 ? "conv3d" : "";
}

Ints SpatialOf(const Ints& extents) {
  return extents.size() < 3 ? Ints() : Ints(extents.begin() + 2, extents.end());
}

ir::Attributes ConvAttributes(const Windows& w, int64_t groups) {
  return {
      {"stride", w.strides}, {"padding", w.begin}, {"dilation", w.dilations}, {"groups", groups}};
}

Exprs ImportConv(NodeImport& n) {
  Expr x = n.in(0), weight = n.in(1);
  const int64_t groups = n.Int("group", 1);
  Windows w = WindowsOf(n, SpatialOf(n.shape(1)));
  const std::string op = OpOf(w.dims());
  if (op.empty()) n.Fail(w.dims(), " spatial axes are not covered; expected 1..3");
  if (n.ok() && w.kernel != SpatialOf(n.shape(1)))
    n.Fail("kernel_shape is not that of the weights");
  if (!n.ok()) return {};
  if (!w.symmetric()) {
    x = PadWindows(x, w, 0);
    w.begin = w.end = Ints(w.dims(), 0);
  }
  const bool line = w.dims() == 1;
  if (line) w.AddHeight();
  Exprs operands = {WithHeight(x), WithHeight(weight)};
  if (n.has(2)) operands.push_back(n.in(2));
  if (!line) return {n.Result(op, operands, ConvAttributes(w, groups))};
  const Expr y = n.b.Op(op, operands, ConvAttributes(w, groups));
  const Ints extents = ExtentsOf(y);
  return {Reshape(y, {extents[0], extents[1], extents[3]})};
}

// The extents of the result: (x - 1) stride + span - pads + output_padding, or as output_shape says,
// which then decides the pads.
bool TransposedExtents(NodeImport& n, Windows& w, Ints& spatial) {
  const Ints x = n.shape(0), extra = n.IntList("output_padding", Ints(w.dims(), 0));
  const Ints wanted = n.IntList("output_shape", {});
  const std::string automatic = n.String("auto_pad", "NOTSET");
  if (!n.ok()) return false;
  if (extra.size() != w.dims() || (!wanted.empty() && wanted.size() != w.dims())) {
    n.Fail("output_padding or output_shape is not one number for each spatial axis");
    return false;
  }
  constexpr int64_t kMost = int64_t{1} << 30;  // times a stride it fits
  for (size_t i = 0; i < w.dims(); ++i) {
    if (x[i + 2] > kMost || extra[i] < 0 || extra[i] > kMost) {
      n.Fail("extent ", x[i + 2], " with output_padding ", extra[i], " is not covered");
      return false;
    }
  }
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  for (size_t i = 0; i < w.dims(); ++i) {
    const int64_t full = (x[i + 2] - 1) * w.strides[i] + w.Span(i) + extra[i];
    if (wanted.empty() && !same) {
      spatial.push_back(full - w.begin[i] - w.end[i]);
      continue;
    }
    spatial.push_back(wanted.empty() ? x[i + 2] * w.strides[i] : wanted[i]);
    const int64_t total = std::max<int64_t>(full - spatial[i], 0);
    w.begin[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.end[i] = total - w.begin[i];
  }
  return true;
}

// The gradient of a convolution in its input, whose output these are.
Exprs ImportConvTranspose(NodeImport& n) {
  const Expr x = n.in(0), weight = n.in(1);
  const int64_t groups = n.Int("group", 1);
  Windows w = WindowsOf(n, SpatialOf(n.shape(1)));
  const std::string op = OpOf(w.dims());
  if (op.empty()) n.Fail(w.dims(), " spatial axes are not covered; expected 1..3");
  constexpr int64_t kMostGroups = int64_t{1} << 20;
  if (groups < 1 || groups > kMostGroups)
    n.Fail("group is ", groups, "; expected 1..", kMostGroups);
  Ints spatial;
  if (!n.ok() || !TransposedExtents(n, w, spatial)) return {};
  // The gradient op pads both sides alike, and its result has less than a stride to spare. Where that
  // does not fit, the whole result is made and what lies in the pads is cut off.
  const Ints first = w.begin, result = spatial;
  Ints whole;
  bool fits = w.symmetric();
  for (size_t i = 0; i < w.dims(); ++i) {
    whole.push_back((n.shape(0)[i + 2] - 1) * w.strides[i] + w.Span(i));
    const int64_t spare = result[i] - (whole[i] - 2 * w.begin[i]);
    fits = fits && spare >= 0 && spare < w.strides[i];
  }
  if (!fits) w.begin = w.end = Ints(w.dims(), 0);
  const bool line = w.dims() == 1;
  Ints extents = {n.shape(0)[0], n.shape(1)[1] * groups};
  if (line) extents.push_back(1);
  for (size_t i = 0; i < result.size(); ++i) extents.push_back(fits ? result[i] : whole[i]);
  if (line) w.AddHeight();
  ir::Attributes attrs = ConvAttributes(w, groups);
  attrs.Set("shape", extents);
  Expr y = n.b.Op(op + "_grad_input", {WithHeight(x), WithHeight(weight)}, attrs);
  if (line) y = Reshape(y, {extents[0], extents[1], extents[3]});
  for (size_t i = 0; i < result.size() && !fits; ++i) {
    Ints none(result.size() + 2, 0), after = none;
    after[i + 2] = std::max<int64_t>(first[i] + result[i] - whole[i], 0);
    const auto axis = static_cast<int64_t>(i) + 2;
    y = Slice(Pad(y, none, after), axis, first[i], first[i] + result[i]);
  }
  if (n.has(2)) y = y + PerChannel(n.in(2), static_cast<int>(result.size()) + 2);
  return {y};
}

// Kernel, strides, pads on both sides, dilations, groups.
ir::Attributes OnnxAttributes(const ir::Attributes& attrs, const Shape& weight) {
  const Ints kernel = SpatialOf(ops::ToInts(weight));
  Ints pads = attrs.GetInts("padding");
  pads.insert(pads.end(), attrs.GetInts("padding").begin(), attrs.GetInts("padding").end());
  return {{"kernel_shape", kernel},
          {"strides", attrs.GetInts("stride")},
          {"pads", pads},
          {"dilations", attrs.GetInts("dilation")},
          {"group", attrs.GetInt("groups")}};
}

void ExportConv(NodeExport& n) {
  Names operands = {n.in(0), n.in(1)};
  if (n.num_inputs() > 2) operands.push_back(n.InAs(2, n.dtype()));
  n.Give("Conv", operands, OnnxAttributes(n.attrs(), n.shape(1)));
}

void ExportConvTranspose(NodeExport& n) {
  ir::Attributes attrs = OnnxAttributes(n.attrs(), n.shape(1));
  Ints extra;
  const size_t dims = n.attrs().GetInts("stride").size();
  for (size_t i = 0; i < dims; ++i) {
    const auto axis = static_cast<int>(i) + 2;
    const int64_t span = (n.shape(1)[axis] - 1) * n.attrs().GetInts("dilation")[i] + 1;
    const int64_t usual = (n.shape(0)[axis] - 1) * n.attrs().GetInts("stride")[i] + span -
                          2 * n.attrs().GetInts("padding")[i];
    extra.push_back(n.node.output_type().shape[axis] - usual);
  }
  attrs.Set("output_padding", extra);
  n.Give("ConvTranspose", {n.in(0), n.in(1)}, std::move(attrs));
}

}  // namespace

void AddConvolutionRules(Rules& rules) {
  rules.Import("Conv", "conv2d, or conv3d", ImportConv);
  rules.Import("ConvTranspose", "conv2d_grad_input, or conv3d_grad_input", ImportConvTranspose);
  for (const char* op : {"conv2d", "conv3d"}) {
    rules.Export(op, "Conv", ExportConv);
    rules.Export(std::string(op) + "_grad_input", "ConvTranspose", ExportConvTranspose);
  }
}

}  // namespace halftone::onnx
