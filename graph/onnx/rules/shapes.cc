// Extents and the order of axes.
#include <algorithm>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// -1: what is left; 0: the extent of x there, unless allowzero.
Exprs ImportReshape(NodeImport& n) {
  const bool allowzero = n.Bool("allowzero", false);
  Ints extents = n.StaticInts(1);
  const Ints from = n.shape(0);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (extents.size() > kMaxRank) n.Fail("rank ", extents.size(), "; expected at most ", kMaxRank);
  int64_t known = 1;
  size_t open = extents.size();
  for (size_t i = 0; i < extents.size() && n.ok(); ++i) {
    if (extents[i] == 0 && !allowzero && i < from.size()) extents[i] = from[i];
    if (extents[i] == -1 && open == extents.size()) {
      open = i;
      continue;
    }
    const bool fits = extents[i] >= 0 && (extents[i] == 0 || known <= kMaxElements / extents[i]);
    if (!fits)
      n.Fail("shape has the extent ", extents[i], "; expected one -1 and others of 0 or more");
    if (fits) known *= extents[i];
  }
  if (!n.ok()) return {};
  if (open < extents.size()) {
    if (known == 0) n.Fail("-1 beside an extent of 0");
    if (n.ok()) extents[open] = x.shape().num_elements() / known;
  }
  if (!n.ok()) return {};
  return {n.Result("reshape", {x}, {{"shape", extents}})};
}

Exprs ImportFlatten(NodeImport& n) {
  const int64_t given = n.Int("axis", 1);
  const Ints extents = n.shape(0);
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) n.Fail("axis is ", given, "; expected ", -rank, "..", rank);
  if (!n.ok()) return {};
  const auto middle = extents.begin() + axis;
  const Ints flat = {Product({extents.begin(), middle}), Product({middle, extents.end()})};
  return {n.Result("reshape", {n.in(0)}, {{"shape", flat}})};
}

Exprs ImportSqueeze(NodeImport& n) {
  const std::optional<Ints> given = n.IntsFrom("axes", 1);
  Ints extents = n.shape(0);
  if (!given.has_value()) {
    extents.erase(std::remove(extents.begin(), extents.end(), 1), extents.end());
    return {n.Result("reshape", {n.in(0)}, {{"shape", extents}})};
  }
  std::vector<bool> gone(extents.size(), false);
  for (const int64_t axis : *given) {
    const auto at = static_cast<size_t>(n.Axis(axis));
    if (!n.ok()) return {};
    if (extents[at] != 1) n.Fail("axis ", axis, " has the extent ", extents[at], "; expected 1");
    gone[at] = true;
  }
  Ints rest;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!gone[i]) rest.push_back(extents[i]);
  }
  if (!n.ok()) return {};
  return {n.Result("reshape", {n.in(0)}, {{"shape", rest}})};
}

Exprs ImportUnsqueeze(NodeImport& n) {
  const Ints given = n.IntsFrom("axes", 1).value_or(Ints());
  const Ints extents = n.shape(0);
  const size_t rank = extents.size() + given.size();
  if (rank > kMaxRank) n.Fail("rank ", rank, "; expected at most ", kMaxRank);
  if (!n.ok()) return {};
  Ints result(rank, -1);
  for (const int64_t axis : given) {
    result[static_cast<size_t>(n.AxisOf(axis, static_cast<int>(rank)))] = 1;
  }
  if (std::count(result.begin(), result.end(), 1) != static_cast<int64_t>(given.size())) {
    n.Fail("an axis twice");
  }
  if (!n.ok()) return {};
  auto next = extents.begin();
  for (int64_t& extent : result) {
    if (extent < 0) extent = *next++;
  }
  return {n.Result("reshape", {n.in(0)}, {{"shape", result}})};
}

Exprs ImportTranspose(NodeImport& n) {
  Ints reversed = Range(0, n.rank(0));
  std::reverse(reversed.begin(), reversed.end());
  return {n.Result("transpose", {n.in(0)}, {{"perm", n.IntList("perm", reversed)}})};
}

Exprs ImportConcat(NodeImport& n) {
  if (!n.has_attr("axis")) n.Fail("attribute axis is missing");
  const int64_t axis = n.Int("axis", 0);
  return {n.Result("concat", n.inputs(), {{"axis", axis}})};
}

// Sizes as given, or as many equal parts as there are outputs, the last smaller.
Exprs ImportSplit(NodeImport& n) {
  const int64_t axis = n.Axis(n.Int("axis", 0));
  const int64_t parts = n.Int("num_outputs", static_cast<int64_t>(n.node.outputs.size()));
  std::optional<Ints> sizes = n.IntsFrom("split", 1);
  const Expr x = n.in(0);
  if (n.ok() && parts < 1) n.Fail("num_outputs is ", parts, "; expected 1 or more");
  if (!n.ok()) return {};
  const int64_t extent = n.shape(0)[static_cast<size_t>(axis)];
  if (!sizes.has_value()) {
    const int64_t size = extent / parts + (extent % parts > 0 ? 1 : 0);
    sizes.emplace();
    for (size_t i = 0; i < n.node.outputs.size(); ++i) {
      const int64_t start = std::min(static_cast<int64_t>(i) * size, extent);
      sizes->push_back(std::min(size, extent - start));
    }
  }
  Exprs outputs;
  int64_t start = 0;
  for (const int64_t size : *sizes) {
    if (size < 0 || size > extent - start) n.Fail("sizes do not add up to ", extent);
    if (!n.ok()) return {};
    outputs.push_back(Slice(x, axis, start, start + size));
    start += size;
  }
  if (start != extent) n.Fail("sizes do not add up to ", extent);
  return outputs;
}

Exprs ImportExpand(NodeImport& n) {
  const auto wanted = Shape::Make(n.StaticInts(1));
  const auto own = Shape::Make(n.shape(0));
  if (!wanted.ok()) n.FailWith(wanted.status());
  if (!n.ok()) return {};
  const auto both = BroadcastShapes(*own, *wanted);
  if (!both.ok()) n.FailWith(both.status());
  if (!n.ok()) return {};
  return {n.Result("broadcast_to", {n.in(0)}, {{"shape", ops::ToInts(*both)}})};
}

Exprs ImportTile(NodeImport& n) {
  const Ints repeats = n.StaticInts(1);
  Ints extents = n.shape(0);
  if (n.ok() && repeats.size() != extents.size()) n.Fail("repeats is not one number for each axis");
  Expr y = n.in(0);
  for (size_t i = 0; i < extents.size() && n.ok(); ++i) {
    if (repeats[i] == 1) continue;
    const auto middle = extents.begin() + static_cast<int64_t>(i);
    const int64_t before = Product({extents.begin(), middle});
    const int64_t behind = Product({middle, extents.end()});
    y = Broadcast(Reshape(y, {before, 1, behind}), {before, repeats[i], behind});
    if (!n.ok()) break;  // too large, or negative
    extents[i] *= repeats[i];
    y = Reshape(y, extents);
  }
  return {y};
}

// The half of the last two axes on and above a diagonal, or on and below; 0 elsewhere.
Exprs ImportTrilu(NodeImport& n) {
  const bool upper = n.Bool("upper", true);
  const Ints ks = n.has(1) ? n.StaticInts(1) : Ints{0};
  const Ints extents = n.shape(0);
  if (extents.size() < 2 || ks.size() != 1) n.Fail("expected rank 2 or more, and one number k");
  if (!n.ok()) return {};
  const Expr x = n.in(0);
  const Expr row = Counting(n, extents[extents.size() - 2], DType::kI64, 1);
  const Expr column = Counting(n, extents.back(), DType::kI64);
  const Expr diagonal = row + n.b.Scalar(DType::kI64, static_cast<double>(ks[0]));
  const Expr kept = upper ? ops::LessEqual(diagonal, column) : ops::LessEqual(column, diagonal);
  return {ops::Where(kept, x, n.b.ScalarLike(x, 0))};
}

// Blocks of channels to blocks of pixels, and back.
ImportFn Blocks(bool to_space) {
  return [to_space](NodeImport& n) -> Exprs {
    const int64_t b = n.Int("blocksize", 0);
    const std::string mode = to_space ? n.String("mode", "DCR") : "DCR";
    const Ints x = n.shape(0);
    const bool fits = x.size() == 4 && b >= 1 && b <= 1024 &&
                      (to_space ? x[1] % (b * b) == 0 : x[2] % b == 0 && x[3] % b == 0);
    if (!fits || (mode != "DCR" && mode != "CRD")) {
      n.Fail("blocks of ", b, " in mode ", mode, " do not fit");
    }
    if (!n.ok()) return {};
    if (!to_space) {
      const Expr split = Reshape(n.in(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
      return {
          Reshape(Transpose(split, {0, 3, 5, 1, 2, 4}), {x[0], x[1] * b * b, x[2] / b, x[3] / b})};
    }
    const int64_t c = x[1] / (b * b);
    const bool depth_first = mode == "DCR";
    const Expr split = Reshape(
        n.in(0), depth_first ? Ints{x[0], b, b, c, x[2], x[3]} : Ints{x[0], c, b, b, x[2], x[3]});
    const Ints perm = depth_first ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3};
    return {Reshape(Transpose(split, perm), {x[0], c, x[2] * b, x[3] * b})};
  };
}

void ExportReshape(NodeExport& n) {
  n.Give("Reshape", {n.in(0), n.Ints(ops::ToInts(n.node.output_type().shape))},
         {{"allowzero", int64_t{1}}});
}

void ExportTranspose(NodeExport& n) {
  n.Give("Transpose", {n.in(0)}, {{"perm", n.attrs().GetInts("perm")}});
}

void ExportConcat(NodeExport& n) {
  n.Give("Concat", n.ins(), {{"axis", n.attrs().GetInt("axis")}});
}

void ExportExpand(NodeExport& n) {
  n.Give("Expand", {n.in(0), n.Ints(ops::ToInts(n.node.output_type().shape))});
}

}  // namespace

void AddShapeRules(Rules& rules) {
  rules.Import("Reshape", "reshape", ImportReshape);
  rules.Export("reshape", "Reshape", ExportReshape);
  rules.Import("Flatten", "reshape", ImportFlatten);
  rules.Import("Squeeze", "reshape", ImportSqueeze);
  rules.Import("Unsqueeze", "reshape", ImportUnsqueeze);
  rules.Import("Transpose", "transpose", ImportTranspose);
  rules.Export("transpose", "Transpose", ExportTranspose);
  rules.Import("Concat", "concat", ImportConcat);
  rules.Export("concat", "Concat", ExportConcat);
  rules.Import("Split", "slice", ImportSplit);
  rules.Import("Expand", "broadcast_to", ImportExpand);
  rules.Export("broadcast_to", "Expand", ExportExpand);
  rules.Import("Tile", "reshape, broadcast_to", ImportTile);
  rules.Import("Trilu", "where", ImportTrilu);
  rules.Import("DepthToSpace", "reshape, transpose", Blocks(true));
  rules.Import("SpaceToDepth", "reshape, transpose", Blocks(false));
}

}  // namespace halftone::onnx
