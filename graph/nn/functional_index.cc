#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {

Value gather(const Value& x, const Value& indices, int64_t axis, Loc loc) {
  return Op("gather", {x, indices}, {{"axis", internal::Axis("gather", x, axis, loc)}}, loc);
}

Value embedding(const Value& indices, const Value& table, int64_t padding_idx, bool sparse,
                Loc loc) {
  return Op("embedding", {table, indices}, {{"padding_idx", padding_idx}, {"sparse", sparse}}, loc);
}

Value one_hot(const Value& x, int64_t num_classes, Loc loc) {
  if (num_classes < 1) {
    return Fail(loc,
                InvalidArgument("one_hot: num_classes is ", num_classes, "; expected at least 1"));
  }
  if (x.valid() && !ir::kIndices.Contains(x.dtype())) {
    return Fail(loc, InvalidArgument("one_hot: x is ", Name(x.dtype()), x.shape(),
                                     "; expected i64 or i32"));
  }
  const internal::At at(loc);
  const Value classes = internal::Counting(num_classes, 1, loc);
  return internal::CastTo(equal(at(unsqueeze(x, -1, loc)), at(classes)), DType::kI64, loc);
}

Value index_select(const Value& x, int64_t axis, const Value& index, Loc loc) {
  if (index.valid() && index.rank() > 1) {
    return Fail(loc, InvalidArgument("index_select: index is ", Name(index.dtype()), index.shape(),
                                     "; expected rank 0 or 1"));
  }
  const int64_t at = internal::Axis("index_select", x, axis, loc);
  const bool single = index.valid() && index.rank() == 0;
  return Op("gather", {x, single ? reshape(index, {1}, loc) : index}, {{"axis", at}}, loc);
}

Value take_along_dim(const Value& x, const Value& indices, std::optional<int64_t> axis, Loc loc) {
  if (!x.valid() || !indices.valid()) return {};
  if (!axis) return take_along_dim(reshape(x, {-1}, loc), reshape(indices, {-1}, loc), 0, loc);
  const std::optional<int64_t> at = internal::FindAxis("take_along_dim", x, *axis, loc);
  if (!at) return {};
  if (indices.rank() != x.rank()) {
    return Fail(
        loc, InvalidArgument("take_along_dim: indices is ", Name(indices.dtype()), indices.shape(),
                             "; expected the rank of x, ", Name(x.dtype()), x.shape()));
  }
  std::vector<int64_t> from(x.shape().dims().begin(), x.shape().dims().end());
  std::vector<int64_t> to(indices.shape().dims().begin(), indices.shape().dims().end());
  for (int i = 0; i < x.rank(); ++i) {
    if (i == *at) continue;
    if (from[i] == 1) from[i] = to[i];
    if (to[i] == 1) to[i] = from[i];
  }
  // Extents that do not broadcast are the op's to name.
  const Value table = Shape(from) == x.shape() ? x : broadcast_to(x, from, loc);
  const Value picks = Shape(to) == indices.shape() ? indices : broadcast_to(indices, to, loc);
  return Op("take_along_dim", {table, picks}, {{"axis", *at}}, loc);
}

Value scatter_add(const Value& x, int64_t axis, const Value& index, const Value& src, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis("scatter_add", x, axis, loc);
  if (!at || !internal::CheckFloats("scatter_add", x, loc) || !index.valid() || !src.valid()) {
    return {};
  }
  bool fits = src.shape() == index.shape() && src.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    fits = i == *at || src.shape()[i] == x.shape()[i];
  }
  if (!fits) {
    return Fail(loc, InvalidArgument("scatter_add: index is ", Name(index.dtype()), index.shape(),
                                     ", src ", Name(src.dtype()), src.shape(),
                                     "; expected equal extents, and those of x, ", Name(x.dtype()),
                                     x.shape(), ", but along axis ", axis));
  }
  const DType dtype = Promote(x.dtype(), src.dtype());
  const DType wide = Promote(dtype, DType::kF32);
  const Value added = Op("take_along_dim_grad", {internal::CastTo(src, wide, loc), index},
                         {{"axis", *at}, {"dim", x.shape()[static_cast<int>(*at)]}}, loc);
  const internal::At value(loc);
  return internal::CastTo(value(internal::CastTo(x, wide, loc)) + value(added), dtype, loc);
}

Value arange(int64_t start, std::optional<int64_t> end, int64_t step, Loc loc) {
  const int64_t first = end ? start : 0, last = end.value_or(start);
  if (step == 0) return Fail(loc, InvalidArgument("arange: step is 0; expected another number"));
  // In unsigned numbers, which differences of any two fit.
  const bool up = step > 0;
  const auto begin = static_cast<uint64_t>(first), distance = static_cast<uint64_t>(step);
  const uint64_t size = up ? distance : 0 - distance;
  uint64_t span = 0;
  if (up && last > first) span = static_cast<uint64_t>(last) - begin;
  if (!up && last < first) span = begin - static_cast<uint64_t>(last);
  const uint64_t count = span / size + (span % size != 0 ? 1 : 0);
  // A constant is part of the graph, and of its file.
  constexpr uint64_t kMost = uint64_t{1} << 27;
  if (count > kMost) {
    return Fail(loc, InvalidArgument("arange: ", count, " numbers from ", first, " to ", last,
                                     "; expected at most ", kMost));
  }
  absl::StatusOr<Tensor> numbers =
      Tensor::Allocate(DType::kI64, Shape{static_cast<int64_t>(count)});
  if (!numbers.ok()) return Fail(loc, Annotate(numbers.status(), "arange: "));
  for (uint64_t i = 0; i < count; ++i) {
    numbers->data<int64_t>()[i] = static_cast<int64_t>(begin + i * distance);
  }
  return constant(*numbers, loc);
}

}  // namespace halftone::nn
