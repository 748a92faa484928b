// Poolings over windows and over whole images.
#include <cmath>
#include <limits>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/windows.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// A pooling along one or two axes, with x as [N, C, H, W] while it runs.
struct Pool {
  Windows w;
  bool line = false;  // one spatial axis
  bool ceil = false;
};

// False after a mistake.
bool ReadPool(NodeImport& n, Pool& pool) {
  pool.w = WindowsOf(n, {});
  pool.ceil = n.Bool("ceil_mode", false);
  pool.line = pool.w.dims() == 1;
  if (n.ok() && pool.w.dims() > 2) n.Fail("3 spatial axes are not covered; expected 1 or 2");
  if (pool.line) pool.w.AddHeight();
  return n.ok();
}

// Whether an op can pad: alike on both sides, at most half of a window.
bool OpPads(const Windows& w) {
  if (!w.symmetric()) return false;
  for (size_t i = 0; i < w.dims(); ++i) {
    if (2 * w.begin[i] > w.kernel[i]) return false;
  }
  return true;
}

// The op over images padded with `value` beforehand where it cannot pad itself.
Expr MakePool(NodeImport& n, Expr x, const Pool& pool, const char* op, ir::Attributes attrs,
              double value) {
  Windows w = pool.w;
  x = WithHeight(x);
  if (!OpPads(w)) {
    x = PadWindows(x, w, value);
    w.begin = w.end = Ints(w.dims(), 0);
  }
  attrs.Set("kernel", w.kernel);
  attrs.Set("stride", w.strides);
  attrs.Set("padding", w.begin);
  attrs.Set("ceil_mode", pool.ceil);
  return n.b.Op(op, {x}, std::move(attrs));
}

Expr WithoutHeight(Expr y, bool line) {
  const Ints extents = ExtentsOf(y);
  return line ? Reshape(y, {extents[0], extents[1], extents[3]}) : y;
}

Exprs ImportMaxPool(NodeImport& n) {
  Pool pool;
  n.Ignore("storage_order");  // of the indices
  if (!ReadPool(n, pool)) return {};
  const bool whole = !IsFloat(n.dtype(0));
  const Expr x = whole ? ops::CastTo(n.in(0), DType::kF32) : n.in(0);
  const Expr y = MakePool(n, x, pool, "max_pool2d", {{"dilation", pool.w.dilations}},
                          -std::numeric_limits<double>::infinity());
  return {ops::CastTo(WithoutHeight(y, pool.line), n.dtype(0))};
}

// What ONNX counts is the part of a window inside the input, and inside the pads if
// count_include_pad: the share of ones there, where the op's own padding does not fit.
Exprs ImportAveragePool(NodeImport& n) {
  Pool pool;
  const bool with_pads = n.Bool("count_include_pad", false);
  if (!ReadPool(n, pool)) return {};
  if (pool.w.dilated()) n.Fail("dilations are not covered");
  if (!n.ok()) return {};
  const ir::Attributes attrs = {{"count_include_pad", with_pads}};
  Expr y = MakePool(n, n.in(0), pool, "avg_pool2d", attrs, 0);
  if (!OpPads(pool.w) && !with_pads) {
    Ints image = n.shape(0);
    image[0] = image[1] = 1;
    const Expr ones = Broadcast(n.b.ScalarLike(n.in(0), 1), image);
    y = y / MakePool(n, ones, pool, "avg_pool2d", attrs, 0);
  }
  return {WithoutHeight(y, pool.line)};
}

// (sum of |x|^p)^(1/p) over a window: the mean of what lies in it, times its size.
Exprs ImportLpPool(NodeImport& n) {
  Pool pool;
  const auto p = static_cast<double>(n.Int("p", 2));
  if (!ReadPool(n, pool)) return {};
  if (pool.w.dilated()) n.Fail("dilations are not covered");
  if (pool.ceil) n.Fail("ceil_mode is not covered");
  if (!n.ok()) return {};
  const Expr exponent = n.b.ScalarLike(n.in(0), p);
  const Expr powers = ops::Pow(ops::Abs(n.in(0)), exponent);
  const Expr mean = MakePool(n, powers, pool, "avg_pool2d", {{"count_include_pad", true}}, 0);
  const Expr sum = mean * static_cast<double>(Product(pool.w.kernel));
  if (!n.ok()) return {};
  return {WithoutHeight(ops::Pow(sum, n.b.ScalarLike(sum, 1 / p)), pool.line)};
}

ImportFn Global(const char* op) {
  return [op](NodeImport& n) -> Exprs {
    const auto rank = static_cast<int64_t>(n.shape(0).size());
    if (rank < 3) n.Fail("rank ", rank, "; expected spatial axes");
    return {Reduce(op, n.in(0), Range(2, rank))};
  };
}

Exprs ImportGlobalLpPool(NodeImport& n) {
  const auto p = static_cast<double>(n.Int("p", 2));
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  const Expr powers = ops::Pow(ops::Abs(x), n.b.ScalarLike(x, p));
  const Expr sum = Reduce("sum", powers, Range(2, static_cast<int64_t>(n.shape(0).size())));
  if (!n.ok()) return {};
  return {ops::Pow(sum, n.b.ScalarLike(x, 1 / p))};
}

ir::Attributes PoolAttributes(const ir::Attributes& attrs) {
  Ints pads = attrs.GetInts("padding");
  pads.insert(pads.end(), attrs.GetInts("padding").begin(), attrs.GetInts("padding").end());
  return {{"kernel_shape", attrs.GetInts("kernel")},
          {"strides", attrs.GetInts("stride")},
          {"pads", pads},
          {"ceil_mode", int64_t{attrs.GetBool("ceil_mode")}}};
}

void ExportMaxPool(NodeExport& n) {
  ir::Attributes attrs = PoolAttributes(n.attrs());
  attrs.Set("dilations", n.attrs().GetInts("dilation"));
  n.Give("MaxPool", {n.in(0)}, std::move(attrs));
}

void ExportAveragePool(NodeExport& n) {
  ir::Attributes attrs = PoolAttributes(n.attrs());
  attrs.Set("count_include_pad", int64_t{n.attrs().GetBool("count_include_pad")});
  n.Give("AveragePool", {n.in(0)}, std::move(attrs));
}

}  // namespace

void AddPoolingRules(Rules& rules) {
  rules.Import("MaxPool", "max_pool2d", ImportMaxPool, "3 spatial axes; the output Indices");
  rules.Export("max_pool2d", "MaxPool", ExportMaxPool);
  rules.Import("AveragePool", "avg_pool2d", ImportAveragePool, "3 spatial axes; dilations");
  rules.Export("avg_pool2d", "AveragePool", ExportAveragePool);
  rules.Import("LpPool", "abs, pow, avg_pool2d", ImportLpPool,
               "3 spatial axes; dilations; ceil_mode");
  rules.Import("GlobalAveragePool", "mean", Global("mean"));
  rules.Import("GlobalMaxPool", "max", Global("max"));
  rules.Import("GlobalLpPool", "abs, pow, sum", ImportGlobalLpPool);
}

}  // namespace halftone::onnx
