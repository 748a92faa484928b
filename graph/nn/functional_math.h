// Selection, constants and casts; and the elementwise functions of functional_elementwise.h.
//
// a and b of a selection broadcast as in NumPy and are cast to Promote(a, b); either may be a
// number. Errors (of the trace): shapes that do not broadcast, dtypes that the op does not take.
#pragma once

#include "halftone/graph/nn/functional_elementwise.h"

namespace halftone::nn {

// a where `condition` (bool) holds, else b; all three broadcast, and a or b may be a number.
// Gradients: both sides are computed everywhere, and the side that was not taken gets a gradient of
// 0, which its own derivative may turn into NaN: where(x > 80, 80, exp(x)) has the gradient
// 0 * inf at x = 100. apply_where computes a side only where it is taken.
inline Value where(const Value& condition, Located a, Located b, Loc loc = Loc::current()) {
  const std::vector<Value> ab = internal::Operands("where", a, b, loc);
  return internal::Op("where", {condition, ab[0], ab[1]}, {}, loc);
}
// f(x) where `condition` (bool) holds, else `otherwise`, without the values and gradients that f
// has elsewhere: f sees `safe_input` there, a number at which it and its derivative are finite.
// Example: apply_where(x <= 80, x, [](const Value& v) { return exp(v); }, 80) caps an exponential;
// apply_where(x > 0, x, [](const Value& v) { return sqrt(v); }, 0) has the gradient 0 at 0.
// Shapes: x, condition and f(x) broadcast.
template <typename F>
Value apply_where(const Value& condition, const Value& x, const F& f, Located otherwise,
                  double safe_input = 1, Loc loc = Loc::current()) {
  const Value safe = where(condition, Located(x, loc), Located(safe_input, loc), loc);
  return where(condition, Located(f(safe), loc), otherwise, loc);
}
// `value` where `mask` (bool) holds, else x. In 16 bit, too, a value beyond the range acts as what
// it is: -1e9 masks like -infinity.
inline Value masked_fill(const Value& x, const Value& mask, double value,
                         Loc loc = Loc::current()) {
  return where(mask, Located(value, loc), Located(x, loc), loc);
}
// A tensor that is part of the graph. Its value is read now; later changes of the tensor are not
// seen.
Value constant(const Tensor& value, Loc loc = Loc::current());
// The same values in another dtype, rounded once. Mixed precision keeps casts that the user wrote.
inline Value cast(const Value& x, DType to, Loc loc = Loc::current()) {
  return internal::Op("cast", {x}, {{"to", to}}, loc);
}

}  // namespace halftone::nn
