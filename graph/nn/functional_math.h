// Elementwise arithmetic, comparison and selection.
//
// Functions of two values broadcast as in NumPy and cast mixed dtypes to Promote(a, b); either may
// be a number. Errors (of the trace): shapes that do not broadcast, dtypes that the op does not
// take.
#pragma once

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// e^x.
inline Value exp(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("exp", {x}, {}, loc);
}
// Natural logarithm.
inline Value log(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("log", {x}, {}, loc);
}
// Square root.
inline Value sqrt(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("sqrt", {x}, {}, loc);
}
// -x.
inline Value neg(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("neg", {x}, {}, loc);
}
// |x|.
inline Value abs(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("abs", {x}, {}, loc);
}
// The largest whole number that is not above x.
inline Value floor(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("floor", {x}, {}, loc);
}
// Cosine of x in radians.
inline Value cos(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("cos", {x}, {}, loc);
}
// Sine of x in radians.
inline Value sin(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("sin", {x}, {}, loc);
}

// a + b.
inline Value add(Located a, Located b) { return internal::Operator("add", a, b, a.loc()); }
// a - b.
inline Value sub(Located a, Located b) { return internal::Operator("sub", a, b, a.loc()); }
// a * b.
inline Value mul(Located a, Located b) { return internal::Operator("mul", a, b, a.loc()); }
// a / b. Floating-point dtypes only.
inline Value div(Located a, Located b) { return internal::Operator("div", a, b, a.loc()); }
// The larger of a and b; ties share the gradient.
inline Value maximum(Located a, Located b) { return internal::Operator("maximum", a, b, a.loc()); }
// The smaller of a and b; ties share the gradient.
inline Value minimum(Located a, Located b) { return internal::Operator("minimum", a, b, a.loc()); }
// a to the power b.
inline Value pow(Located a, Located b) { return internal::Operator("pow", a, b, a.loc()); }

// Comparisons: bool results.
// a == b.
inline Value equal(Located a, Located b) { return internal::Operator("equal", a, b, a.loc()); }
// a != b.
inline Value not_equal(Located a, Located b) {
  return internal::Operator("not_equal", a, b, a.loc());
}
// a < b.
inline Value less(Located a, Located b) { return internal::Operator("less", a, b, a.loc()); }
// a <= b.
inline Value less_equal(Located a, Located b) {
  return internal::Operator("less_equal", a, b, a.loc());
}
// a > b.
inline Value greater(Located a, Located b) { return internal::Operator("greater", a, b, a.loc()); }
// a >= b.
inline Value greater_equal(Located a, Located b) {
  return internal::Operator("greater_equal", a, b, a.loc());
}

// Of bool values.
inline Value logical_and(const Value& a, const Value& b, Loc loc = Loc::current()) {
  return internal::Op("logical_and", {a, b}, {}, loc);
}
inline Value logical_or(const Value& a, const Value& b, Loc loc = Loc::current()) {
  return internal::Op("logical_or", {a, b}, {}, loc);
}
inline Value logical_not(const Value& a, Loc loc = Loc::current()) {
  return internal::Op("logical_not", {a}, {}, loc);
}
// Whether x is neither infinite nor NaN; bool.
inline Value isfinite(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("isfinite", {x}, {}, loc);
}
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
