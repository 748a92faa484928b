// The formulas of functors-inl.h in device code: functors::f32 and functors::f64; and those of
// whole numbers (whole_functors-inl.h).
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"

#define HT_FUNCTOR_INLINE __device__ __forceinline__

#include "halftone/kernels/whole_functors-inl.h"

namespace halftone::kernels::functors {

#include "halftone/kernels/scalar_math.inc"

__device__ __forceinline__ float NormalTailV(float a) { return 0.5f * erfcxf(a * 0.707106781f); }
__device__ __forceinline__ double NormalTailV(double a) {
  return 0.5 * erfcx(a * 0.70710678118654752);
}
__device__ __forceinline__ float ProductErrorV(float a, float b, float p) { return fmaf(a, b, -p); }
__device__ __forceinline__ double ProductErrorV(double a, double b, double p) {
  return fma(a, b, -p);
}

namespace f32 {
using V = float;
using M = bool;
constexpr bool kF32 = true;
__device__ __forceinline__ V Splat(double c) { return static_cast<V>(c); }
}  // namespace f32
namespace f64 {
using V = double;
using M = bool;
constexpr bool kF32 = false;
__device__ __forceinline__ V Splat(double c) { return c; }
}  // namespace f64

}  // namespace halftone::kernels::functors

// CosV and SinV, written in the overload set above.
#include "halftone/kernels/cuda/device/angle.cuh"

// What the header has from Highway on the CPU. It guards itself by comparing with
// HWY_TARGET_TOGGLE, as headers do that are included once per target.
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#define HWY_NAMESPACE functors::f32
#include "halftone/kernels/functors-inl.h"
#undef HWY_NAMESPACE
#define HWY_TARGET_TOGGLE
#define HWY_NAMESPACE functors::f64
#include "halftone/kernels/functors-inl.h"
#undef HWY_NAMESPACE
#undef HWY_TARGET_TOGGLE
#undef HT_FUNCTOR_INLINE
#undef HWY_AFTER_NAMESPACE
#undef HWY_BEFORE_NAMESPACE
