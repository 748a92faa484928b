// Reductions, running sums and sorting.
#include <algorithm>
#include <limits>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// Axes are an attribute in older opsets and an operand in newer ones; none means all, or nothing.
struct Reduction {
  Ints axes;  // ascending, each once
  bool keepdim = true;
};

Reduction ReadReduction(NodeImport& n) {
  Reduction r;
  r.keepdim = n.Bool("keepdims", true);
  const bool noop = n.Bool("noop_with_empty_axes", false);
  const Ints given = n.IntsFrom("axes", 1).value_or(Ints());
  if (given.empty() && !noop) r.axes = Range(0, n.rank(0));
  for (const int64_t axis : given) r.axes.push_back(n.Axis(axis));
  std::sort(r.axes.begin(), r.axes.end());
  if (std::adjacent_find(r.axes.begin(), r.axes.end()) != r.axes.end()) n.Fail("an axis twice");
  return r;
}

// before(x), the op over the axes, after(y).
ImportFn Reducing(const char* op, Expr (*before)(Expr), Expr (*after)(Expr)) {
  return [op, before, after](NodeImport& n) -> Exprs {
    const Reduction r = ReadReduction(n);
    Expr x = n.in(0);
    if (!n.ok()) return {};
    if (before != nullptr) x = before(x);
    const bool plain = after == nullptr && !r.axes.empty();
    if (plain) return {n.Result(op, {x}, {{"axes", r.axes}, {"keepdim", r.keepdim}})};
    const Expr y = Reduce(op, x, r.axes, r.keepdim);
    return {n.ok() && after != nullptr ? after(y) : y};
  };
}

// The extents of what a reduction gives.
Ints ReducedExtents(NodeImport& n, const Reduction& r) {
  Ints extents;
  for (int i = 0; i < n.rank(0); ++i) {
    const bool reduced = std::binary_search(r.axes.begin(), r.axes.end(), i);
    if (!reduced || r.keepdim) extents.push_back(reduced ? 1 : n.shape(0)[static_cast<size_t>(i)]);
  }
  return extents;
}

// Whether an extent that is reduced is 0, so that the result is of no element.
bool IsOfNothing(NodeImport& n, const Reduction& r) {
  return std::any_of(r.axes.begin(), r.axes.end(),
                     [&](int64_t axis) { return n.shape(0)[static_cast<size_t>(axis)] == 0; });
}

// The smallest value of a dtype, or the largest: what a maximum or minimum of nothing is.
Expr Extreme(NodeImport& n, const Reduction& r, bool largest) {
  const DType dtype = n.dtype(0);
  double value = largest ? 1 : 0;
  if (dtype == DType::kU8) value = largest ? 255 : 0;
  if (IsFloat(dtype)) value = std::numeric_limits<double>::infinity() * (largest ? 1 : -1);
  if (dtype == DType::kI32 || dtype == DType::kI64)
    n.Fail("integers of an empty axis are not covered");
  return Broadcast(n.b.Scalar(dtype, value), ReducedExtents(n, r));
}

Exprs ImportReduceMax(NodeImport& n) {
  const Reduction r = ReadReduction(n);
  if (n.ok() && IsOfNothing(n, r)) return {Extreme(n, r, false)};
  const bool flags = n.dtype(0) == DType::kBool;
  const Expr x = flags ? ops::CastTo(n.in(0), DType::kU8) : n.in(0);
  const Expr y = Reduce("max", x, r.axes, r.keepdim);
  return {flags ? ops::CastTo(y, DType::kBool) : y};
}

Exprs ImportReduceMin(NodeImport& n) {
  const Reduction r = ReadReduction(n);
  if (n.ok() && IsOfNothing(n, r)) return {Extreme(n, r, true)};
  const bool flags = n.dtype(0) == DType::kBool;
  const Expr x = flags ? ops::CastTo(n.in(0), DType::kU8) : n.in(0);
  if (!n.ok()) return {};
  const Expr y = ReduceMin(x, r.axes, r.keepdim);
  return {flags ? ops::CastTo(y, DType::kBool) : y};
}

Exprs ImportReduceProd(NodeImport& n) {
  const Reduction r = ReadReduction(n);
  Expr y = n.in(0);
  // From the last axis on, so that the numbers of the others stay.
  for (auto axis = r.axes.rbegin(); axis != r.axes.rend(); ++axis) {
    y = n.b.Op("prod", {y}, {{"axis", *axis}, {"keepdim", r.keepdim}});
  }
  return {y};
}

// log(sum(e^(x - m))) + m with the maximum m, or 0 where that is infinite.
Exprs ImportReduceLogSumExp(NodeImport& n) {
  const Reduction r = ReadReduction(n);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (IsOfNothing(n, r)) return {Extreme(n, r, false)};
  const Expr max = Reduce("max", x, r.axes);
  const Expr m = ops::Where(ops::IsFinite(max), max, n.b.ScalarLike(x, 0));
  const Expr y = ops::Log(Reduce("sum", ops::Exp(x - m), r.axes)) + m;
  return {Reshape(y, ReducedExtents(n, r))};
}

// The first of equals, or the last.
ImportFn ArgOf(bool smallest) {
  return [smallest](NodeImport& n) -> Exprs {
    const int64_t axis = n.Axis(n.Int("axis", 0));
    const bool keepdim = n.Bool("keepdims", true), last = n.Bool("select_last_index", false);
    Expr x = n.in(0);
    if (!n.ok()) return {};
    if (smallest) x = Reversed(x);
    if (last) x = n.b.Op("flip", {x}, {{"axes", Ints{axis}}});
    const Expr y = n.b.Op("argmax", {x}, {{"axis", axis}, {"keepdim", keepdim}});
    const int64_t extent = n.shape(0)[static_cast<size_t>(axis)];
    if (!last || !n.ok()) return {y};
    return {n.b.Scalar(DType::kI64, static_cast<double>(extent - 1)) - y};
  };
}

// exclusive: without the element itself, which comes in from the other end as 0.
Exprs ImportCumSum(NodeImport& n) {
  const bool exclusive = n.Bool("exclusive", false), reverse = n.Bool("reverse", false);
  const Ints given = n.StaticInts(1);
  if (n.ok() && given.size() != 1) n.Fail("axis has ", given.size(), " elements; expected one");
  if (!n.ok()) return {};
  const int64_t axis = n.Axis(given[0]);
  const Ints extents = n.shape(0);
  Expr x = n.in(0);
  if (!n.ok()) return {};
  const auto at = static_cast<size_t>(axis);
  if (exclusive && extents[at] > 0) {
    Ints before(extents.size(), 0), after = before;
    (reverse ? after : before)[at] = 1;
    const int64_t start = reverse ? 1 : 0;
    x = Slice(Pad(x, before, after), axis, start, start + extents[at]);
  }
  return {n.Result("cumsum", {x}, {{"axis", axis}, {"reverse", reverse}})};
}

Exprs ImportTopK(NodeImport& n) {
  const int64_t axis = n.Axis(n.Int("axis", -1));
  const bool largest = n.Bool("largest", true);
  n.Ignore("sorted");  // in any order otherwise, so in this one
  const Ints k = n.has(1) ? n.StaticInts(1) : Ints{n.Int("k", -1)};
  if (n.ok() && (k.size() != 1 || k[0] < 0)) n.Fail("k is not one number of 0 or more");
  if (!n.ok()) return {};
  return n.b.Make("sort", {n.in(0)}, {{"axis", axis}, {"descending", largest}, {"k", k[0]}});
}

// Axes of a record's reduction, none meaning all.
Ints AxesOfNode(NodeExport& n) {
  const int rank = n.shape(0).rank();
  const ops::Axes axes = ops::CheckedAxes(n.attrs().GetInts("axes"), rank);
  return {axes.begin(), axes.end()};
}

int64_t Keepdims(NodeExport& n) { return n.attrs().GetBool("keepdim") ? 1 : 0; }

// Over no axis, which as a list would mean all, it is x.
bool ReducesNothing(NodeExport& n) {
  if (!AxesOfNode(n).empty()) return false;
  n.Give("Cast", {n.in(0)}, {{"to", int64_t{DTypeNumber(n.node.output_type().dtype)}}});
  return true;
}

void ExportSum(NodeExport& n) {
  if (ReducesNothing(n)) return;
  const std::string x = n.InAs(0, n.node.output_type().dtype);
  n.Give("ReduceSum", {x, n.Ints(AxesOfNode(n))}, {{"keepdims", Keepdims(n)}});
}

ExportFn WithAxes(const std::string& op_type) {
  return [op_type](NodeExport& n) {
    if (ReducesNothing(n)) return;
    n.Give(op_type, {n.InAs(0, n.node.output_type().dtype)},
           {{"axes", AxesOfNode(n)}, {"keepdims", Keepdims(n)}});
  };
}

void ExportProd(NodeExport& n) {
  n.Give("ReduceProd", {n.in(0)},
         {{"axes", Ints{n.attrs().GetInt("axis")}}, {"keepdims", Keepdims(n)}});
}

void ExportArgmax(NodeExport& n) {
  n.Give("ArgMax", {n.in(0)}, {{"axis", n.attrs().GetInt("axis")}, {"keepdims", Keepdims(n)}});
}

void ExportSumToShape(NodeExport& n) {
  const Shape& to = n.node.output_type().shape;
  const ops::Axes axes = ops::BroadcastAxes(to, n.shape(0));
  const std::string x = n.InAs(0, n.node.output_type().dtype);
  std::string sum = x;
  if (!axes.empty()) {
    sum = n.Add("ReduceSum", {x, n.Ints({axes.begin(), axes.end()})}, {{"keepdims", int64_t{1}}});
  }
  n.Give("Reshape", {sum, n.Ints(ops::ToInts(to))}, {{"allowzero", int64_t{1}}});
}

void ExportCumsum(NodeExport& n) {
  const Tensor axis = Tensor::FromVector<int64_t>(Shape{}, {n.attrs().GetInt("axis")});
  n.Give("CumSum", {n.in(0), n.Constant(axis)},
         {{"reverse", int64_t{n.attrs().GetBool("reverse")}}});
}

void ExportSort(NodeExport& n) {
  const int64_t axis = n.attrs().GetInt("axis");
  const int normal = ops::CheckedAxis(axis, n.shape(0).rank());
  n.GiveOutputs(2, "TopK", {n.in(0), n.Ints({n.node.output_type().shape[normal]})},
                {{"axis", axis},
                 {"largest", int64_t{n.attrs().GetBool("descending")}},
                 {"sorted", int64_t{1}}});
}

Expr SquareOf(Expr x) { return x * x; }

}  // namespace

void AddReductionRules(Rules& rules) {
  rules.Import("ReduceSum", "sum", Reducing("sum", nullptr, nullptr));
  rules.Import("ReduceMean", "mean", Reducing("mean", nullptr, nullptr));
  rules.Import("ReduceMax", "max", ImportReduceMax);
  rules.Import("ReduceMin", "neg, max, neg", ImportReduceMin);
  rules.Import("ReduceProd", "prod", ImportReduceProd);
  rules.Import("ReduceL1", "abs, sum", Reducing("sum", ops::Abs, nullptr));
  rules.Import("ReduceL2", "mul, sum, sqrt", Reducing("sum", SquareOf, ops::Sqrt));
  rules.Import("ReduceSumSquare", "mul, sum", Reducing("sum", SquareOf, nullptr));
  rules.Import("ReduceLogSum", "sum, log", Reducing("sum", nullptr, ops::Log));
  rules.Import("ReduceLogSumExp", "max, exp, sum, log, ...", ImportReduceLogSumExp);
  rules.Import("ArgMax", "argmax", ArgOf(false));
  rules.Import("ArgMin", "neg, argmax", ArgOf(true));
  rules.Import("CumSum", "cumsum", ImportCumSum);
  rules.Import("TopK", "sort", ImportTopK);
  rules.Export("sum", "ReduceSum", ExportSum);
  rules.Export("mean", "ReduceMean", WithAxes("ReduceMean"));
  rules.Export("max", "ReduceMax", WithAxes("ReduceMax"));
  rules.Export("prod", "ReduceProd", ExportProd);
  rules.Export("argmax", "ArgMax", ExportArgmax);
  rules.Export("sum_to_shape", "ReduceSum, Reshape", ExportSumToShape);
  rules.Export("cumsum", "CumSum", ExportCumsum);
  rules.Export("sort", "TopK", ExportSort);
}

}  // namespace halftone::onnx
