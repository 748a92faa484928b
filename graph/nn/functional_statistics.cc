// Reductions that are formulas of others. They compute in f32 where x is 16-bit, mixed precision or
// not, and round the result once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {
namespace {

using internal::At;
using internal::CastTo;
using internal::Wide;

// Elements that are reduced to one.
int64_t CountOver(const Value& x, const std::vector<int64_t>& axes) {
  if (axes.empty()) return x.shape().num_elements();
  int64_t count = 1;
  for (int64_t axis : axes) count *= x.shape()[static_cast<int>(axis)];
  return count;
}

Value VarianceOf(const char* op, const Value& x, const AxisList& axes, int64_t correction,
                 bool keepdim, Loc loc) {
  if (!internal::CheckFloats(op, x, loc)) return {};
  const int64_t count = CountOver(x, internal::Axes(op, x, axes.axes, loc));
  const At at(loc);
  const Value wide = Wide(x, loc), from_mean = at(wide) - at(mean(wide, axes, true, loc));
  const Value squares = sum(square(from_mean, loc), axes, keepdim, loc);
  return at(squares) / at(static_cast<double>(std::max<int64_t>(0, count - correction)));
}

// y where it is not 0, by f; there the derivative of f may be infinite, and is taken for 0.
template <typename F>
Value FlatAtZero(const Value& y, const F& f, Loc loc) {
  const At at(loc);
  return apply_where(not_equal(at(y), at(0.0)), y, f, at(y), 1.0, loc);
}

}  // namespace

Value var(const Value& x, const AxisList& axes, int64_t correction, bool keepdim, Loc loc) {
  const KeepFp32 differences_of_rounded_values_are_mostly_rounding;
  return CastTo(VarianceOf("var", x, axes, correction, keepdim, loc), x.dtype(), loc);
}

Value std(const Value& x, const AxisList& axes, int64_t correction, bool keepdim, Loc loc) {
  const KeepFp32 differences_of_rounded_values_are_mostly_rounding;
  const auto root = [loc](const Value& v) { return sqrt(v, loc); };
  const Value variance = VarianceOf("std", x, axes, correction, keepdim, loc);
  return CastTo(FlatAtZero(variance, root, loc), x.dtype(), loc);
}

Value norm(const Value& x, double p, const AxisList& axes, bool keepdim, Loc loc) {
  if (std::isnan(p)) return Fail(loc, InvalidArgument("norm: p is nan; expected a number"));
  if (!internal::CheckFloats("norm", x, loc)) return {};
  const KeepFp32 powers_and_their_sums_leave_the_range_of_f16;
  const At at(loc);
  const Value wide = Wide(x, loc);
  Value y;
  if (std::isinf(p)) {
    const Value size = abs(wide, loc);
    y = p > 0 ? max(size, axes, keepdim, loc) : neg(max(neg(size, loc), axes, keepdim, loc), loc);
  } else if (p == 0) {
    y = sum(CastTo(not_equal(at(wide), at(0.0)), wide.dtype(), loc), axes, keepdim, loc);
  } else if (p == 1) {
    y = sum(abs(wide, loc), axes, keepdim, loc);
  } else if (p == 2) {
    y = FlatAtZero(
        sum(square(wide, loc), axes, keepdim, loc), [loc](const Value& v) { return sqrt(v, loc); },
        loc);
  } else {
    const auto power = [&](double exponent) {
      return [at, exponent](const Value& v) { return pow(at(v), at(exponent)); };
    };
    // 0 to a negative power is infinite, and so is the sum.
    const Value size = abs(wide, loc);
    const Value powers = p > 0 ? FlatAtZero(size, power(p), loc) : power(p)(size);
    y = FlatAtZero(sum(powers, axes, keepdim, loc), power(1 / p), loc);
  }
  return CastTo(y, x.dtype(), loc);
}

Value logsumexp(const Value& x, const AxisList& axes, bool keepdim, Loc loc) {
  if (!internal::CheckFloats("logsumexp", x, loc)) return {};
  const KeepFp32 exponentials_leave_the_range_of_f16;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const At at(loc);
  const Value wide = Wide(x, loc);
  // The largest term becomes 1. An infinite one stays what it is: inf - inf would be NaN.
  const Value largest = detach(max(wide, axes, true, loc), loc);
  const Value shift = where(isfinite(largest, loc), at(largest), at(0.0), loc);
  const Value terms = sum(exp(at(wide) - at(shift), loc), axes, keepdim, loc);
  const auto logarithm = [loc](const Value& v) { return log(v, loc); };
  const Value y =
      apply_where(not_equal(at(terms), at(0.0)), terms, logarithm, at(-kInfinity), 1.0, loc);
  const std::vector<int64_t> extents(y.shape().dims().begin(), y.shape().dims().end());
  return CastTo(at(y) + at(reshape(shift, extents, loc)), x.dtype(), loc);
}

}  // namespace halftone::nn
