// sort, argsort, topk; the largest and the smallest with their indices.
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {
namespace {

using internal::At;

// x in the opposite order, exactly: NaN stays NaN, and no integer is lost.
Value Reversed(const Value& x, Loc loc) {
  if (!x.valid() || IsFloat(x.dtype())) return neg(x, loc);
  const At at(loc);
  return at(x.dtype() == DType::kU8 ? 255.0 : -1.0) - at(x);
}

Values Extreme(const char* op, const Value& x, const Value& by, int64_t axis, bool keepdim,
               Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis(op, x, axis, loc);
  if (!at) return Values(std::vector<Value>(2));
  const Value index = argmax(by, *at, true, loc);
  const Value value = Op("take_along_dim", {x, index}, {{"axis", *at}}, loc);
  if (keepdim) return {value, index};
  return {squeeze(value, *at, loc), squeeze(index, *at, loc)};
}

Values Sorted(const char* op, const Value& x, int64_t axis, bool descending, int64_t k, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis(op, x, axis, loc);
  if (!at) return Values(std::vector<Value>(2));
  return Ops("sort", {x}, {{"axis", *at}, {"descending", descending}, {"k", k}}, loc);
}

}  // namespace

Value min(const Value& x, const AxisList& axes, bool keepdim, Loc loc) {
  return Reversed(max(Reversed(x, loc), axes, keepdim, loc), loc);
}

Value argmin(const Value& x, int64_t axis, bool keepdim, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis("argmin", x, axis, loc);
  return at ? argmax(Reversed(x, loc), *at, keepdim, loc) : Value();
}

Values max_with_indices(const Value& x, int64_t axis, bool keepdim, Loc loc) {
  return Extreme("max_with_indices", x, x, axis, keepdim, loc);
}

Values min_with_indices(const Value& x, int64_t axis, bool keepdim, Loc loc) {
  return Extreme("min_with_indices", x, Reversed(x, loc), axis, keepdim, loc);
}

Values sort(const Value& x, int64_t axis, bool descending, Loc loc) {
  return Sorted("sort", x, axis, descending, -1, loc);
}

Value argsort(const Value& x, int64_t axis, bool descending, Loc loc) {
  return Sorted("argsort", x, axis, descending, -1, loc).vector().back();
}

Values topk(const Value& x, int64_t k, int64_t axis, bool largest, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis("topk", x, axis, loc);
  if (!at) return Values(std::vector<Value>(2));
  const int64_t extent = x.shape()[static_cast<int>(*at)];
  if (k < 0 || k > extent) {
    Fail(loc, InvalidArgument("topk: k is ", k, "; expected 0..", extent, ", the extent of axis ",
                              axis, " of ", Name(x.dtype()), x.shape()));
    return Values(std::vector<Value>(2));
  }
  return Sorted("topk", x, axis, largest, k, loc);
}

}  // namespace halftone::nn
