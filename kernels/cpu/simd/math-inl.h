// The overload set that functors-inl.h is written in, for Highway vectors: arithmetic comes from
// Highway by argument-dependent lookup; here are the constants, selection and transcendental
// functions, total over all floats (Highway's contrib math leaves NaN, inf and out-of-range
// arguments undefined). Errors are a few units in the last place.
#if defined(HALFTONE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_MATH_INL_H_
#undef HALFTONE_SIMD_MATH_INL_H_
#else
#define HALFTONE_SIMD_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>

#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;
using M = hn::Mask<F32Tag>;
constexpr bool kF32 = true;

HWY_INLINE V Splat(double c) { return hn::Set(F32Tag(), static_cast<float>(c)); }
HWY_INLINE V Select(M condition, V yes, V no) { return hn::IfThenElse(condition, yes, no); }

// Beyond these the result is inf or 0 in f32, subnormals included.
HWY_INLINE V ExpV(V x) {
  const V clamped = hn::Min(hn::Max(x, Splat(-104.0f)), Splat(89.0f));
  V y = hn::Exp(F32Tag(), clamped);
  y = Select(hn::Gt(x, Splat(88.7228394f)), Splat(std::numeric_limits<float>::infinity()), y);
  return Select(hn::IsNaN(x), x, y);
}

// exp(x) for x of at most 88 or NaN, within 2 units of the last place down to e^-87; 0 below that: a
// weight so small is lost beside the largest of its row. With n the whole number nearest to x / ln 2
// and r = x - n ln 2: 2^n (1 + r + r^2 g(r)). Coefficients of g: weighted least squares on Chebyshev
// nodes against double precision, iterated towards equal ripple; largest relative error 3.3e-9.
HWY_INLINE V ExpOfScore(V x) {
  const U32Tag bits;
  // 1.5 * 2^23 leaves n + 127 in the lowest bits, the exponent of 2^n.
  const V magic = Splat(12582912.0 + 127);
  const V shifted = hn::MulAdd(x, Splat(1.4426950408889634), magic);
  const V n = hn::Sub(shifted, magic);
  const V power = hn::BitCast(F32Tag(), hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  // ln 2 in two parts, of which n times the first is exact.
  const V r = hn::NegMulAdd(n, Splat(-2.12194440e-4), hn::NegMulAdd(n, Splat(0.693359375), x));
  V g = hn::MulAdd(Splat(0.0013813140103593469), r, Splat(0.00836941972374916));
  g = hn::MulAdd(g, r, Splat(0.04166845604777336));
  g = hn::MulAdd(g, r, Splat(0.16666515171527863));
  g = hn::MulAdd(g, r, Splat(0.4999999403953552));
  const V y = hn::Add(Splat(1.0), hn::MulAdd(hn::Mul(r, r), g, r));
  return hn::IfThenZeroElse(hn::Lt(x, Splat(-87.0)), hn::Mul(y, power));
}

HWY_INLINE V LogV(V x) {
  const float kInf = std::numeric_limits<float>::infinity();
  const V y = hn::Log(F32Tag(), x);
  const V edge =
      Select(hn::Eq(x, Splat(0.0f)), Splat(-kInf),
             Select(hn::Lt(x, Splat(0.0f)), Splat(std::numeric_limits<float>::quiet_NaN()), x));
  return Select(hn::And(hn::Gt(x, Splat(0.0f)), hn::Lt(x, Splat(kInf))), y, edge);
}

HWY_INLINE V TanhV(V x) {
  const V clamped = hn::Min(hn::Max(x, Splat(-20.0f)), Splat(20.0f));
  return Select(hn::IsNaN(x), x, hn::Tanh(F32Tag(), clamped));
}

// Replaces the lanes of y where |x| is above `limit` (or no number) by f(x) in f64: the library
// reduces any argument.
template <typename F>
HWY_INLINE V BeyondReduction(V x, V y, float limit, const F& f) {
  const M good = hn::Le(hn::Abs(x), Splat(limit));
  if (HWY_LIKELY(hn::AllTrue(F32Tag(), good))) return y;
  float from[kLanes], to[kLanes];
  StoreVec(x, from);
  StoreVec(y, to);
  for (size_t i = 0; i < kLanes; ++i) {
    if (!(std::abs(from[i]) <= limit)) to[i] = static_cast<float>(f(static_cast<double>(from[i])));
  }
  return LoadVec(to);
}

// Up to where Highway's documentation has cos and sin valid.
constexpr float kReductionLimit = 39000.0f;
HWY_INLINE V CosV(V x) {
  return BeyondReduction(x, hn::Cos(F32Tag(), x), kReductionLimit,
                         [](double v) { return std::cos(v); });
}
HWY_INLINE V SinV(V x) {
  const V y = Select(hn::Eq(x, Splat(0.0)), x, hn::Sin(F32Tag(), x));  // Highway: sin(-0) = 0
  return BeyondReduction(x, y, kReductionLimit, [](double v) { return std::sin(v); });
}

HWY_INLINE V SigmoidV(V x) { return hn::Div(Splat(1.0f), hn::Add(Splat(1.0f), ExpV(hn::Neg(x)))); }

// a b - p exactly, where p is a b rounded.
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE V ProductErrorV(V a, V b, V p) { return hn::MulSub(a, b, p); }
#else
// Dekker, "A floating-point technique for extending the available precision", 1971.
HWY_INLINE V HighHalf(V x) {
  const V scaled = hn::Mul(x, Splat(4097.0));
  return hn::Sub(scaled, hn::Sub(scaled, x));
}
HWY_INLINE V ProductErrorV(V a, V b, V p) {
  const V ah = HighHalf(a), bh = HighHalf(b), al = hn::Sub(a, ah), bl = hn::Sub(b, bh);
  const V high = hn::Sub(hn::Mul(ah, bh), p);
  return hn::Add(hn::Add(hn::Add(high, hn::Mul(ah, bl)), hn::Mul(al, bh)), hn::Mul(al, bl));
}
#endif

// Phi(-a) e^(a^2 / 2) for a in [0, 60]: t times a polynomial in t = 1 / (1 + a / 4). Coefficients:
// weighted least squares on Chebyshev nodes against double-precision erfc, iterated towards equal
// ripple. Largest relative error 1.9e-8, in f32 3.3e-7.
HWY_INLINE V NormalTailV(V a) {
  const V t = hn::Div(Splat(1.0), hn::Add(Splat(1.0), hn::Mul(Splat(0.25), a)));
  V p = Splat(0.020633699372410774);
  for (float c : {-0.0846455916762352f, 0.10258515924215317f, -0.03877275064587593f,
                  0.06791533529758453f, 0.057456400245428085f, 0.08192455768585205f,
                  0.09342924505472183f, 0.09973842650651932f, 0.09973553568124771f}) {
    p = hn::Add(hn::Mul(p, t), Splat(c));
  }
  return hn::Mul(p, t);
}

// erf. For |x| <= 1, x times a polynomial in x^2; above, 1 - exp(-p(|x|)) with p fitted to
// -log(erfc) on [1, 4]; erf rounds to 1 beyond. Coefficients: weighted least squares on Chebyshev
// nodes against double-precision erf and erfc, iterated towards equal ripple. Largest error over
// [-4, 4]: 1.8e-7 relative below 1, 6.3e-8 absolute above.
HWY_INLINE V ErfV(V x) {
  const V a = hn::Abs(x);
  const V t = hn::Mul(x, x);
  V small = Splat(7.853855640860274e-05f);
  for (float c : {-0.0008010191959328949f, 0.00518832728266716f, -0.026853810995817184f,
                  0.1128358542919159f, -0.3761262595653534f, 1.1283791065216064f}) {
    small = hn::Add(hn::Mul(small, t), Splat(c));
  }
  small = hn::Mul(small, x);
  const V b = hn::Min(a, Splat(4.0f));
  V p = Splat(2.1686881154892035e-05f);
  for (float c :
       {-0.00044133677147328854f, 0.004204563796520233f, -0.025208262726664543f,
        0.10841858386993408f, 0.6332198977470398f, 1.1295784711837769f, -0.00018804127466864884f}) {
    p = hn::Add(hn::Mul(p, b), Splat(c));
  }
  const V large = hn::CopySign(hn::Sub(Splat(1.0f), hn::Exp(F32Tag(), hn::Neg(p))), x);
  return Select(hn::IsNaN(x), x, Select(hn::Le(a, Splat(1.0f)), small, large));
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_MATH_INL_H_
