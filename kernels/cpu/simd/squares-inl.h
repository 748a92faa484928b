// Sums of squares in f64. Included once per target, after Highway.
#if defined(HALFTONE_SIMD_SQUARES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_SQUARES_INL_H_
#undef HALFTONE_SIMD_SQUARES_INL_H_
#else
#define HALFTONE_SIMD_SQUARES_INL_H_
#endif

#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
class SumOfSquares {
 public:
  HWY_INLINE void Add(V v) {
    const double x = hn::GetLane(v);
    sum_ += x * x;
  }
  double Total() const { return sum_; }

 private:
  double sum_ = 0;
};
#else
class SumOfSquares {
 public:
  // Not implicit: those are of no target.
  HWY_INLINE SumOfSquares() : low_(hn::Zero(Double())), high_(hn::Zero(Double())) {}
  HWY_INLINE void Add(V v) {
    const Double d;
    const Half half;
    const auto low = hn::PromoteTo(d, hn::LowerHalf(half, v));
    const auto high = hn::PromoteTo(d, hn::UpperHalf(half, v));
    low_ = hn::Add(low_, hn::Mul(low, low));
    high_ = hn::Add(high_, hn::Mul(high, high));
  }
  HWY_INLINE double Total() const {
    return hn::GetLane(hn::SumOfLanes(Double(), hn::Add(low_, high_)));
  }

 private:
  using Half = hn::Half<F32Tag>;
  using Double = hn::Rebind<double, Half>;
  hn::Vec<Double> low_, high_;
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_SQUARES_INL_H_
