// The formulas of functors-inl.h in double, for the host: in_double::ReluF and so on. Reference
// kernels are made of them, and what the CPU's kernels do in f64. Functions are the C library's.
#pragma once

#include <cmath>

#include "halftone/kernels/whole_functors-inl.h"

#define HT_FUNCTOR_INLINE inline
namespace halftone::kernels::in_double {

using std::isfinite;
#include "halftone/kernels/scalar_math.inc"

using V = double;
using M = bool;
constexpr bool kF32 = false;

inline V Splat(double c) { return c; }
inline V CosV(V x) { return std::cos(x); }
inline V SinV(V x) { return std::sin(x); }
// Phi(-a) e^(a^2 / 2), in long double, which has the range for both factors (|a| <= 60).
inline V NormalTailV(V a) {
  const long double wide = a;
  return static_cast<V>(0.5L * std::exp(0.5L * wide * wide) *
                        std::erfc(wide * 0.70710678118654752440L));
}
inline V ProductErrorV(V a, V b, V p) { return std::fma(a, b, -p); }

}  // namespace halftone::kernels::in_double

// What functors-inl.h has from Highway where it is included for vectors; a batch may have read Highway before.
#pragma push_macro("HWY_BEFORE_NAMESPACE")
#pragma push_macro("HWY_AFTER_NAMESPACE")
#pragma push_macro("HWY_NAMESPACE")
#undef HWY_BEFORE_NAMESPACE
#undef HWY_AFTER_NAMESPACE
#undef HWY_NAMESPACE
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#define HWY_NAMESPACE in_double
#include "halftone/kernels/functors-inl.h"
#pragma pop_macro("HWY_NAMESPACE")
#pragma pop_macro("HWY_AFTER_NAMESPACE")
#pragma pop_macro("HWY_BEFORE_NAMESPACE")
#undef HT_FUNCTOR_INLINE
