// Slices, padding, and values picked by index.
#include <algorithm>
#include <limits>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// As NumPy's x[start:end:step] along some axes, negative steps included.
Exprs ImportSlice(NodeImport& n) {
  const Ints starts = n.IntsFrom("starts", 1).value_or(Ints());
  const Ints ends = n.IntsFrom("ends", 2).value_or(Ints());
  const Ints axes = n.IntsFrom("axes", 3).value_or(Range(0, static_cast<int64_t>(starts.size())));
  const Ints steps = n.has(4) ? n.StaticInts(4) : Ints(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    n.Fail("starts, ends, axes and steps differ in size");
  }
  Ints limits = n.shape(0), begins(limits.size(), 0), strides(limits.size(), 1), flipped;
  for (size_t k = 0; k < starts.size() && n.ok(); ++k) {
    const auto i = static_cast<size_t>(n.Axis(axes[k]));
    if (!n.ok()) break;
    const int64_t extent = n.shape(0)[i], step = steps[k];
    if (step == 0) n.Fail("a step of 0");
    int64_t start = starts[k] < 0 ? starts[k] + extent : starts[k];
    int64_t end = ends[k] < 0 ? ends[k] + extent : ends[k];
    if (step < 0) {  // the same positions counted from the other end, upwards
      flipped.push_back(static_cast<int64_t>(i));
      start = extent - 1 - std::clamp<int64_t>(start, -1, extent - 1);
      end = extent - 1 - std::clamp<int64_t>(end, -1, extent - 1);
    }
    begins[i] = std::clamp<int64_t>(start, 0, extent);
    limits[i] = std::max(begins[i], std::clamp<int64_t>(end, 0, extent));
    strides[i] = std::max<int64_t>(std::abs(step), 1);
  }
  Expr x = n.in(0);
  if (!n.ok()) return {};
  if (!flipped.empty()) x = n.b.Op("flip", {x}, {{"axes", flipped}});
  return {n.Result("slice", {x}, {{"starts", begins}, {"limits", limits}, {"strides", strides}})};
}

// What is negative cuts off.
Exprs ImportPad(NodeImport& n) {
  const std::string mode = n.String("mode", "constant");
  const Ints pads = n.IntsFrom("pads", 1).value_or(Ints());
  const double value = n.NumberFrom("value", 2, 0);
  const Ints extents = n.shape(0);
  const auto rank = static_cast<int64_t>(extents.size());
  const Ints axes = n.has(3) ? n.StaticInts(3) : Range(0, rank);
  if (pads.size() != 2 * axes.size()) n.Fail("pads are not two numbers for each axis");
  if (mode != "constant" && mode != "reflect" && mode != "edge") {
    n.Fail("mode ", mode, " is not covered");
  }
  Ints before(extents.size(), 0), after = before;
  for (size_t k = 0; k < axes.size() && n.ok(); ++k) {
    const auto i = static_cast<size_t>(n.Axis(axes[k]));
    if (!n.ok()) break;
    before[i] = pads[k];
    after[i] = pads[k + axes.size()];
  }
  Expr x = n.in(0);
  for (size_t i = 0; i < extents.size() && n.ok(); ++i) {
    const int64_t first = std::max<int64_t>(-before[i], 0);
    const int64_t last = extents[i] - std::max<int64_t>(-after[i], 0);
    if (first > last) n.Fail("pads cut off more than the extent ", extents[i]);
    if (n.ok()) x = Slice(x, static_cast<int64_t>(i), first, last);
    before[i] = std::max<int64_t>(before[i], 0);
    after[i] = std::max<int64_t>(after[i], 0);
  }
  if (!n.ok()) return {};
  return {n.Result("pad", {x},
                   {{"before", before},
                    {"after", after},
                    {"mode", mode == "edge" ? std::string("replicate") : mode},
                    {"value", value}})};
}

// Indices of operand `i`, from 0: constants that have no negative one stay as they are.
Expr Indices(NodeImport& n, int i, int64_t extent) {
  if (const Tensor* known = n.Constant(i); known != nullptr && IsInteger(known->dtype())) {
    bool counted = true;
    for (int64_t k = 0; k < known->num_elements(); ++k) {
      counted = counted && LoadInt(known->raw(), known->dtype(), k) >= 0;
    }
    if (counted) return n.in(i);
  }
  return FromStart(n.in(i), extent);
}

Exprs ImportGather(NodeImport& n) {
  const int64_t axis = n.Axis(n.Int("axis", 0));
  if (!n.ok()) return {};
  const Expr index = Indices(n, 1, n.shape(0)[static_cast<size_t>(axis)]);
  return {n.Result("gather", {n.in(0), index}, {{"axis", axis}})};
}

// The part of x that has the extents of `like` but along `axis`.
Expr CutTo(Expr x, const Ints& like, int64_t axis) {
  for (size_t i = 0; i < like.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) x = Slice(x, static_cast<int64_t>(i), 0, like[i]);
  }
  return x;
}

Exprs ImportGatherElements(NodeImport& n) {
  const int64_t axis = n.Axis(n.Int("axis", 0));
  if (n.rank(1) != n.rank(0)) n.Fail("indices have another rank than x");
  if (!n.ok()) return {};
  const Expr index = Indices(n, 1, n.shape(0)[static_cast<size_t>(axis)]);
  return {n.Result("take_along_dim", {CutTo(n.in(0), n.shape(1), axis), index}, {{"axis", axis}})};
}

// The places that the last axis of `index` names among `extents`, each from 0, as one number: their
// row-major position.
Expr Positions(Expr index, const Ints& extents) {
  const Ints own = ExtentsOf(index);
  const auto last = static_cast<int64_t>(own.size()) - 1;
  const Ints outer(own.begin(), own.end() - 1);
  Expr position;
  int64_t stride = 1;
  for (auto k = static_cast<int64_t>(extents.size()); k-- > 0;) {
    const Expr part = Reshape(Slice(index, last, k, k + 1), outer);
    const Expr from = FromStart(part, extents[static_cast<size_t>(k)]);
    const Expr scaled = from * static_cast<double>(stride);
    position = position.valid() ? position + scaled : scaled;
    stride *= extents[static_cast<size_t>(k)];
  }
  return position;
}

// Rows of x, by as many axes as the last axis of the indices has entries, behind the axes of a batch.
Exprs ImportGatherNd(NodeImport& n) {
  const int64_t batch = n.Int("batch_dims", 0);
  const Ints x = n.shape(0), index = n.shape(1);
  const int64_t depth = index.empty() ? 0 : index.back();
  const auto rank = static_cast<int64_t>(x.size());
  const bool fits = n.ok() && !index.empty() && batch >= 0 && depth >= 1 && batch + depth <= rank &&
                    batch < static_cast<int64_t>(index.size()) &&
                    std::equal(x.begin(), x.begin() + std::min(batch, rank), index.begin());
  if (!fits) n.Fail("indices do not fit x");
  if (!n.ok()) return {};
  const Ints picked(x.begin() + batch, x.begin() + batch + depth);
  const int64_t batches = Product({x.begin(), x.begin() + batch});
  const int64_t places = Product(picked);
  Ints rest = {batches * places};
  rest.insert(rest.end(), x.begin() + batch + depth, x.end());
  Expr position = Positions(n.in(1), picked);
  if (batch > 0) {
    const Ints outer = ExtentsOf(position);
    const int64_t inside = batches == 0 ? 0 : Product(outer) / batches;
    const Expr first = Counting(n, batches, DTypeOf(position), 1) * static_cast<double>(places);
    position = Reshape(Reshape(position, {batches, inside}) + first, outer);
  }
  const Expr y = n.b.Op("gather", {Reshape(n.in(0), rest), position}, {{"axis", int64_t{0}}});
  return {y};
}

// x where no index points to, else what `updates` has there; with "add" their sum. By the op that adds:
// ONNX leaves open what two indices of one place give otherwise.
Expr Scattered(NodeImport& n, Expr x, Expr index, Expr updates, int64_t axis) {
  const std::string reduction = n.String("reduction", "none");
  if (reduction != "none" && reduction != "add") n.Fail("reduction ", reduction, " is not covered");
  const DType dtype = DTypeOf(x);
  const DType wide = IsFloat(dtype) ? dtype : DType::kF64;
  if (dtype == DType::kI64 && reduction == "add") n.Fail("int64 is not covered");
  if (!n.ok() || !x.valid()) return {};
  const Ints extents = ExtentsOf(x), small = ExtentsOf(index);
  const int64_t dim = extents[static_cast<size_t>(axis)];
  const auto spread = [&](Expr values) {
    Expr y = n.b.Op("take_along_dim_grad", {values, index}, {{"axis", axis}, {"dim", dim}});
    Ints none(extents.size(), 0), after = none;
    for (size_t i = 0; i < extents.size() && y.valid(); ++i) {
      if (static_cast<int64_t>(i) != axis) after[i] = std::max<int64_t>(extents[i] - small[i], 0);
    }
    return Pad(y, none, after);
  };
  const Expr sums = ops::CastTo(spread(ops::CastTo(updates, wide)), dtype);
  if (reduction == "add") return x + sums;
  const Expr count = spread(Broadcast(n.b.Scalar(DType::kF32, 1), small));
  if (!n.ok()) return {};
  return ops::Where(ops::Less(n.b.ScalarLike(count, 0), count), sums, x);
}

Exprs ImportScatterElements(NodeImport& n) {
  const int64_t axis = n.Axis(n.Int("axis", 0));
  if (n.rank(1) != n.rank(0)) n.Fail("indices have another rank than x");
  if (!n.ok()) return {};
  const Expr index = Indices(n, 1, n.shape(0)[static_cast<size_t>(axis)]);
  return {Scattered(n, n.in(0), index, n.in(2), axis)};
}

Exprs ImportScatterNd(NodeImport& n) {
  const Ints x = n.shape(0), index = n.shape(1);
  const int64_t depth = index.empty() ? 0 : index.back();
  if (!n.ok() || index.empty() || depth < 1 || depth > static_cast<int64_t>(x.size())) {
    n.Fail("indices do not fit x");
    return {};
  }
  const int64_t places = Product({x.begin(), x.begin() + depth});
  const int64_t row = Product({x.begin() + depth, x.end()});
  const int64_t count = Product({index.begin(), index.end() - 1});
  const Expr position = Reshape(Positions(n.in(1), {x.begin(), x.begin() + depth}), {count, 1});
  const Expr everywhere = Broadcast(position, {count, row});
  const Expr flat =
      Scattered(n, Reshape(n.in(0), {places, row}), everywhere, Reshape(n.in(2), {count, row}), 0);
  return {Reshape(flat, x)};
}

// values[1] where the new axis is at the index, else values[0].
Exprs ImportOneHot(NodeImport& n) {
  const double given = n.StaticNumber(1, 0);
  const bool counts = given >= 0 && given <= static_cast<double>(kMaxStaticElements);
  if (!counts || n.rank(0) >= kMaxRank) n.Fail("a depth of ", given, " is not covered");
  const auto depth = static_cast<int64_t>(counts ? given : 0);
  const Expr values = n.in(2);
  Ints extents = n.shape(0);
  const int64_t axis = n.AxisOf(n.Int("axis", -1), static_cast<int>(extents.size()) + 1);
  if (n.ok() && n.shape(2) != Ints{2}) n.Fail("values are not two numbers");
  if (!n.ok()) return {};
  const auto behind = static_cast<int>(static_cast<int64_t>(extents.size()) - axis);
  const Expr index = FromStart(ops::CastTo(n.in(0), DType::kI64), depth);
  extents.insert(extents.begin() + axis, 1);
  const Expr hot = ops::Equal(Reshape(index, extents), Counting(n, depth, DType::kI64, behind));
  const Expr off = Reshape(Slice(values, 0, 0, 1), {}), on = Reshape(Slice(values, 0, 1, 2), {});
  return {ops::Where(hot, on, off)};
}

void ExportSlice(NodeExport& n) {
  const Ints& starts = n.attrs().GetInts("starts");
  n.Give("Slice", {n.in(0), n.Ints(starts), n.Ints(n.attrs().GetInts("limits")),
                   n.Ints(Range(0, static_cast<int64_t>(starts.size()))),
                   n.Ints(n.attrs().GetInts("strides"))});
}

void ExportFlip(NodeExport& n) {
  const ops::Axes axes = ops::CheckedAxes(n.attrs().GetInts("axes"), n.shape(0).rank());
  const size_t count = axes.size();
  if (count == 0) {
    n.Give("Identity", {n.in(0)});
    return;
  }
  n.Give("Slice", {n.in(0), n.Ints(Ints(count, -1)),
                   n.Ints(Ints(count, std::numeric_limits<int64_t>::min())),
                   n.Ints({axes.begin(), axes.end()}), n.Ints(Ints(count, -1))});
}

void ExportPad(NodeExport& n) {
  Ints pads = n.attrs().GetInts("before");
  pads.insert(pads.end(), n.attrs().GetInts("after").begin(), n.attrs().GetInts("after").end());
  const std::string& mode = n.attrs().GetString("mode");
  n.Give("Pad", {n.in(0), n.Ints(pads), n.Number(n.attrs().GetFloat("value"))},
         {{"mode", mode == "replicate" ? std::string("edge") : mode}});
}

void ExportGather(NodeExport& n) {
  n.Give("Gather", n.ins(), {{"axis", n.attrs().GetInt("axis")}});
}

void ExportEmbedding(NodeExport& n) { n.Give("Gather", n.ins(), {{"axis", int64_t{0}}}); }

void ExportTakeAlongDim(NodeExport& n) {
  n.Give("GatherElements", n.ins(), {{"axis", n.attrs().GetInt("axis")}});
}

}  // namespace

void AddIndexRules(Rules& rules) {
  rules.Import("Slice", "slice, flip", ImportSlice);
  rules.Export("slice", "Slice", ExportSlice);
  rules.Export("flip", "Slice", ExportFlip);
  rules.Import("Pad", "pad, slice", ImportPad, "mode wrap");
  rules.Export("pad", "Pad", ExportPad);
  rules.Import("Gather", "gather", ImportGather);
  rules.Export("gather", "Gather", ExportGather);
  rules.Export("embedding", "Gather", ExportEmbedding);
  rules.Import("GatherElements", "take_along_dim", ImportGatherElements);
  rules.Export("take_along_dim", "GatherElements", ExportTakeAlongDim);
  rules.Import("GatherND", "reshape, gather", ImportGatherNd);
  rules.Import("ScatterElements", "take_along_dim_grad, where", ImportScatterElements,
               "reductions but add");
  rules.Import("Scatter", "take_along_dim_grad, where", ImportScatterElements);
  rules.Import("ScatterND", "take_along_dim_grad, where", ImportScatterNd, "reductions but add");
  rules.Import("OneHot", "equal, where", ImportOneHot);
}

}  // namespace halftone::onnx
