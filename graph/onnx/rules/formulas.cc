#include "halftone/graph/onnx/rules/formulas.h"

#include <algorithm>
#include <numeric>

#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {

Ints ExtentsOf(Expr x) { return x.valid() ? ops::ToInts(x.shape()) : Ints(kMaxRank, 1); }

DType DTypeOf(Expr x) { return x.valid() ? x.dtype() : DType::kF32; }

int64_t Product(const Ints& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

Ints Range(int64_t begin, int64_t end) {
  Ints values(static_cast<size_t>(std::max<int64_t>(end - begin, 0)));
  std::iota(values.begin(), values.end(), begin);
  return values;
}

Expr Reshape(Expr x, const Ints& extents) {
  if (!x.valid() || ExtentsOf(x) == extents) return x;
  return x.builder()->Op("reshape", {x}, {{"shape", extents}});
}

Expr Broadcast(Expr x, const Ints& extents) {
  if (!x.valid() || ExtentsOf(x) == extents) return x;
  return x.builder()->Op("broadcast_to", {x}, {{"shape", extents}});
}

Expr Transpose(Expr x, const Ints& perm) {
  if (!x.valid() || perm == Range(0, static_cast<int64_t>(perm.size()))) return x;
  return x.builder()->Op("transpose", {x}, {{"perm", perm}});
}

Expr Slice(Expr x, int64_t axis, int64_t start, int64_t limit) {
  if (!x.valid()) return x;
  Ints limits = ExtentsOf(x), starts(limits.size(), 0);
  if (start == 0 && limit == limits.at(static_cast<size_t>(axis))) return x;
  starts.at(static_cast<size_t>(axis)) = start;
  limits.at(static_cast<size_t>(axis)) = limit;
  return x.builder()->Op(
      "slice", {x}, {{"starts", starts}, {"limits", limits}, {"strides", Ints(starts.size(), 1)}});
}

Expr Joined(const Exprs& parts, int64_t axis) {
  if (parts.size() == 1 || !parts[0].valid()) return parts[0];
  return parts[0].builder()->Op("concat", parts, {{"axis", axis}});
}

Expr Pad(Expr x, const Ints& before, const Ints& after, double value) {
  const auto none = [](const Ints& extents) {
    return std::all_of(extents.begin(), extents.end(), [](int64_t extent) { return extent == 0; });
  };
  if (!x.valid() || (none(before) && none(after))) return x;
  return x.builder()->Op("pad", {x}, {{"before", before}, {"after", after}, {"value", value}});
}

Expr Reduce(const char* op, Expr x, const Ints& axes, bool keepdim) {
  if (!x.valid() || axes.empty()) return x;
  return x.builder()->Op(op, {x}, {{"axes", axes}, {"keepdim", keepdim}});
}

Expr ReduceMin(Expr x, const Ints& axes, bool keepdim) {
  return Reversed(Reduce("max", Reversed(x), axes, keepdim));
}

Expr Reversed(Expr x) {
  if (DTypeOf(x) == DType::kU8) return x.builder()->ScalarLike(x, 255) - x;
  // Of a whole number n the opposite is -1 - n, which the smallest has too.
  if (IsInteger(DTypeOf(x))) return x.builder()->ScalarLike(x, -1) - x;
  return -x;
}

Expr Counting(NodeImport& n, int64_t count, DType dtype, int from_end) {
  if (!n.Spend(count)) return {&n.b, ir::Value{}};
  Ints extents(static_cast<size_t>(from_end) + 1, 1);
  extents[0] = count;
  Tensor numbers = Tensor::Empty(dtype, Shape(extents));
  for (int64_t i = 0; i < count; ++i) numbers.set(i, static_cast<double>(i));
  return n.b.Constant(numbers);
}

Expr PerChannel(Expr v, int rank) {
  if (!v.valid()) return v;
  Ints extents(static_cast<size_t>(std::max(rank, 2)), 1);
  extents[1] = v.shape().num_elements();
  extents.resize(static_cast<size_t>(rank), 1);
  return Reshape(v, extents);
}

Expr FromStart(Expr index, int64_t extent) {
  if (!index.valid()) return index;
  ir::Builder& b = *index.builder();
  const Expr zero = b.ScalarLike(index, 0);
  const Expr shifted = index + b.ScalarLike(index, static_cast<double>(extent));
  return ops::Where(ops::Less(index, zero), shifted, index);
}

Expr WithHeight(Expr x) {
  Ints extents = ExtentsOf(x);
  if (extents.size() == 3) extents.insert(extents.begin() + 2, 1);
  return Reshape(x, extents);
}

}  // namespace halftone::onnx
