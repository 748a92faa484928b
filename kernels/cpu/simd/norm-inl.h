// What the norms share: mean and deviations of a run, in two passes.
#if defined(HALFTONE_SIMD_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_NORM_INL_H_
#undef HALFTONE_SIMD_NORM_INL_H_
#else
#define HALFTONE_SIMD_NORM_INL_H_
#endif

#include <algorithm>

#include "halftone/kernels/cpu/simd/norm_fns.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// The first pass gives a mean good to f32; the second sums the deviations from it and their
// squares, which corrects the mean and takes its error out of the squares.
template <typename T>
Moments MomentsOf(const void* data, int64_t n) {
  const T* x = static_cast<const T*>(data);
  const F32Tag d;
  double total = 0;
  F32Vec sum = hn::Zero(d);
  ForBlocks(
      n, [&](auto load, size_t) { sum = hn::Add(sum, load(x)); },
      [&] {
        total += SumOf(sum);
        sum = hn::Zero(d);
      });
  const auto base = static_cast<float>(total / static_cast<double>(n));
  double deviation = 0, squares = 0;
  F32Vec first = hn::Zero(d), second = hn::Zero(d);
  ForBlocks(
      n,
      [&](auto load, size_t count) {
        F32Vec v = hn::Sub(load(x), hn::Set(d, base));
        if (count < kLanes) v = hn::IfThenElseZero(hn::FirstN(d, count), v);
        first = hn::Add(first, v);
        second = hn::Add(second, hn::Mul(v, v));
      },
      [&] {
        deviation += SumOf(first);
        squares += SumOf(second);
        first = second = hn::Zero(d);
      });
  const double shift = deviation / static_cast<double>(n);
  return {base + shift, std::max(0.0, squares - deviation * shift)};
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_NORM_INL_H_
