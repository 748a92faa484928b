// f32 vectors over f32, f16 and bf16 memory. Included once per target, after Highway.
//
// Arithmetic is f32; a store to a 16-bit type rounds once, to nearest even, and keeps inf, NaN and
// subnormals. Highway's own bf16 demotion truncates and its f16 conversions are wrong for inf and
// NaN below AVX2, so the conversions are here: in integer operations, or the F16C instruction where
// the target has it.
#if defined(HALFTONE_SIMD_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_VECTORS_INL_H_
#undef HALFTONE_SIMD_VECTORS_INL_H_
#else
#define HALFTONE_SIMD_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "halftone/core/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32Tag = hn::ScalableTag<float>;
using F32Vec = hn::Vec<F32Tag>;
using U32Tag = hn::RebindToUnsigned<F32Tag>;
using I32Tag = hn::RebindToSigned<F32Tag>;
using U16Tag = hn::Rebind<uint16_t, F32Tag>;

// Lanes of an f32 vector, a constant on every target we compile.
constexpr size_t kLanes = hn::MaxLanes(F32Tag());

HWY_INLINE F32Vec LoadVec(const float* p) { return hn::LoadU(F32Tag(), p); }
HWY_INLINE void StoreVec(F32Vec v, float* p) { hn::StoreU(v, F32Tag(), p); }

HWY_INLINE F32Vec LoadVec(const BF16* p) {
  const auto bits = hn::LoadU(U16Tag(), reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(F32Tag(), hn::ShiftLeft<16>(hn::PromoteTo(U32Tag(), bits)));
}

HWY_INLINE void StoreVec(F32Vec v, BF16* p) {
  const U32Tag du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
  // Rounding would carry a NaN's payload into the exponent: keep its upper half and make it quiet.
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  const auto nan = hn::RebindMask(du, hn::IsNaN(v));
  const auto half = hn::IfThenElse(nan, quiet, rounded);
  hn::StoreU(hn::DemoteTo(U16Tag(), hn::BitCast(I32Tag(), half)), U16Tag(),
             reinterpret_cast<uint16_t*>(p));
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_INLINE F32Vec LoadVec(const F16* p) {
  const hn::Rebind<hwy::float16_t, F32Tag> d16;
  return hn::PromoteTo(F32Tag(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE void StoreVec(F32Vec v, F16* p) {
  const hn::Rebind<hwy::float16_t, F32Tag> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(p));
}
#else
HWY_INLINE F32Vec LoadVec(const F16* p) {
  const U32Tag du;
  const auto half = hn::PromoteTo(du, hn::LoadU(U16Tag(), reinterpret_cast<const uint16_t*>(p)));
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(du, 0x7FFF)));
  // The exponent bias differs by 112; multiplying adjusts it and normalises subnormals in one step.
  const auto scaled =
      hn::BitCast(du, hn::Mul(hn::BitCast(F32Tag(), magnitude), hn::Set(F32Tag(), 0x1p112f)));
  const auto special = hn::Ge(hn::BitCast(I32Tag(), magnitude), hn::Set(I32Tag(), 0x0F800000));
  const auto is_nan = hn::Gt(hn::BitCast(I32Tag(), magnitude), hn::Set(I32Tag(), 0x0F800000));
  const auto quiet = hn::IfThenElseZero(hn::RebindMask(du, is_nan), hn::Set(du, 0x400000));
  const auto infinite = hn::Or(hn::Or(magnitude, quiet), hn::Set(du, 0x7F800000));
  return hn::BitCast(F32Tag(),
                     hn::Or(sign, hn::IfThenElse(hn::RebindMask(du, special), infinite, scaled)));
}
HWY_INLINE void StoreVec(F32Vec v, F16* p) {
  const U32Tag du;
  const I32Tag di;
  const auto bits = hn::BitCast(du, v);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto biased = hn::Sub(magnitude, hn::Set(du, 112u << 23));
  const auto normal = hn::ShiftRight<13>(hn::Add(biased, hn::Add(odd, hn::Set(du, 0xFFF))));
  // Below 2^-14: adding 0.5 leaves the value in units of 2^-24, rounded by the addition itself.
  const auto half = hn::Set(F32Tag(), 0.5f);
  const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(F32Tag(), magnitude), half)),
                                 hn::BitCast(du, half));
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  const auto is_small = hn::Lt(signed_magnitude, hn::Set(di, 0x38800000));
  const auto is_large = hn::Ge(signed_magnitude, hn::Set(di, 0x477FF000));  // 65520 and above
  const auto is_nan = hn::Gt(signed_magnitude, hn::Set(di, 0x7F800000));
  const auto quiet =
      hn::Or(hn::Set(du, 0x7E00), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FF)));
  auto result = hn::IfThenElse(hn::RebindMask(du, is_small), subnormal, normal);
  result = hn::IfThenElse(hn::RebindMask(du, is_large), hn::Set(du, 0x7C00), result);
  result = hn::IfThenElse(hn::RebindMask(du, is_nan), quiet, result);
  hn::StoreU(hn::DemoteTo(U16Tag(), hn::BitCast(di, hn::Or(result, sign))), U16Tag(),
             reinterpret_cast<uint16_t*>(p));
}
#endif

// The first `count` elements; the other lanes are 0. Requires: count < kLanes.
template <typename T>
HWY_INLINE F32Vec LoadPart(const T* p, size_t count) {
  T buffer[kLanes] = {};
  for (size_t i = 0; i < count; ++i) buffer[i] = p[i];
  return LoadVec(buffer);
}
template <typename T>
HWY_INLINE void StorePart(F32Vec v, T* p, size_t count) {
  T buffer[kLanes];
  StoreVec(v, buffer);
  for (size_t i = 0; i < count; ++i) p[i] = buffer[i];
}
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE F32Vec LoadPart(const float* p, size_t count) {
  return hn::MaskedLoad(hn::FirstN(F32Tag(), count), F32Tag(), p);
}
HWY_INLINE void StorePart(F32Vec v, float* p, size_t count) {
  hn::BlendedStore(v, hn::FirstN(F32Tag(), count), F32Tag(), p);
}
#endif

// sums[i] += v[i].
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void AddToDoubles(F32Vec v, double* sums) { sums[0] += hn::GetLane(v); }
#else
HWY_INLINE void AddToDoubles(F32Vec v, double* sums) {
  const hn::Half<F32Tag> half;
  const hn::Rebind<double, decltype(half)> d;
  const auto low = hn::PromoteTo(d, hn::LowerHalf(half, v));
  const auto high = hn::PromoteTo(d, hn::UpperHalf(half, v));
  double* upper = sums + kLanes / 2;
  hn::StoreU(hn::Add(hn::LoadU(d, sums), low), d, sums);
  hn::StoreU(hn::Add(hn::LoadU(d, upper), high), d, upper);
}
#endif

// y[i] = f(x[i]) over whole vectors and a tail.
template <typename X, typename Y, typename Fn>
HWY_INLINE void MapVec(const X* x, Y* y, int64_t n, const Fn& f) {
  int64_t i = 0;
  constexpr int64_t kStep = kLanes;
  for (; i + kStep <= n; i += kStep) StoreVec(f(LoadVec(x + i)), y + i);
  if (i < n) StorePart(f(LoadPart(x + i, n - i)), y + i, n - i);
}

// y[i] = f(a[i], b[i]).
template <typename A, typename B, typename Y, typename Fn>
HWY_INLINE void MapVec2(const A* a, const B* b, Y* y, int64_t n, const Fn& f) {
  int64_t i = 0;
  constexpr int64_t kStep = kLanes;
  for (; i + kStep <= n; i += kStep) StoreVec(f(LoadVec(a + i), LoadVec(b + i)), y + i);
  if (i < n) StorePart(f(LoadPart(a + i, n - i), LoadPart(b + i, n - i)), y + i, n - i);
}

// Calls step(load, store) over the vectors of a row of n and its tail. load(p) and store(v, p) take
// array starts.
template <typename Step>
HWY_INLINE void ForRow(int64_t n, const Step& step) {
  constexpr int64_t kStep = kLanes;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    step([i](const auto* p) { return LoadVec(p + i); },
         [i](F32Vec v, auto* p) { StoreVec(v, p + i); });
  }
  if (i >= n) return;
  const size_t rest = n - i;
  step([i, rest](const auto* p) { return LoadPart(p + i, rest); },
       [i, rest](F32Vec v, auto* p) { StorePart(v, p + i, rest); });
}

HWY_INLINE float SumOf(F32Vec v) { return hn::GetLane(hn::SumOfLanes(F32Tag(), v)); }

// Terms that a lane adds in f32 before f64 takes over: equal ones, each of which may be rounded the
// same way, then err by at most 7e-7 of the sum, however many there are.
constexpr int64_t kLaneTerms = 32;

// sums[i] += the f32 sums of a few terms each, which become 0.
HWY_INLINE void FlushSums(float* terms, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += terms[i];
  std::fill_n(terms, n, 0.0f);
}

// Calls step(load, count) over the vectors of a row of n, where load(p) reads the vector of array
// p, or in the tail the `count` < kLanes elements left, zeros behind. Calls flush()
// every kLaneTerms vectors and at the end: lanes add up short blocks only, which flush adds in f64.
template <typename Step, typename Flush>
HWY_INLINE void ForBlocks(int64_t n, const Step& step, const Flush& flush) {
  constexpr int64_t kStep = kLanes, kBlock = kLaneTerms * kStep;
  const int64_t whole = n / kStep * kStep;
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, whole);
    for (int64_t i = begin; i < end; i += kStep) {
      step([i](const auto* p) { return LoadVec(p + i); }, static_cast<size_t>(kStep));
    }
    flush();
  }
  if (whole >= n) return;
  const size_t rest = n - whole;
  step([whole, rest](const auto* p) { return LoadPart(p + whole, rest); }, rest);
  flush();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_VECTORS_INL_H_
