// The formulas of functors-inl.h in device code: functors::f32 and functors::f64. And those of
// integers and of comparisons, for which one template serves all types.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"

namespace halftone::kernels::functors {

// The overload set that functors-inl.h asks for.
template <typename T>
__device__ __forceinline__ T Add(T a, T b) {
  return a + b;
}
template <typename T>
__device__ __forceinline__ T Sub(T a, T b) {
  return a - b;
}
template <typename T>
__device__ __forceinline__ T Mul(T a, T b) {
  return a * b;
}
template <typename T>
__device__ __forceinline__ T Div(T a, T b) {
  return a / b;
}
template <typename T>
__device__ __forceinline__ T Neg(T x) {
  return -x;
}
template <typename T>
__device__ __forceinline__ bool Lt(T a, T b) {
  return a < b;
}
template <typename T>
__device__ __forceinline__ bool Le(T a, T b) {
  return a <= b;
}
template <typename T>
__device__ __forceinline__ bool Gt(T a, T b) {
  return a > b;
}
template <typename T>
__device__ __forceinline__ bool Eq(T a, T b) {
  return a == b;
}
template <typename T>
__device__ __forceinline__ T Select(bool condition, T yes, T no) {
  return condition ? yes : no;
}
__device__ __forceinline__ float Abs(float x) { return fabsf(x); }
__device__ __forceinline__ float Sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ float Floor(float x) { return floorf(x); }
__device__ __forceinline__ float ExpV(float x) { return expf(x); }
__device__ __forceinline__ float LogV(float x) { return logf(x); }
__device__ __forceinline__ float TanhV(float x) { return tanhf(x); }
__device__ __forceinline__ float ErfV(float x) { return erff(x); }
__device__ __forceinline__ float SigmoidV(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float NormalTailV(float a) { return 0.5f * erfcxf(a * 0.707106781f); }
__device__ __forceinline__ float ProductErrorV(float a, float b, float p) { return fmaf(a, b, -p); }
__device__ __forceinline__ double Abs(double x) { return fabs(x); }
__device__ __forceinline__ double Sqrt(double x) { return sqrt(x); }
__device__ __forceinline__ double Floor(double x) { return floor(x); }
__device__ __forceinline__ double ExpV(double x) { return exp(x); }
__device__ __forceinline__ double LogV(double x) { return log(x); }
__device__ __forceinline__ double TanhV(double x) { return tanh(x); }
__device__ __forceinline__ double ErfV(double x) { return erf(x); }
__device__ __forceinline__ double SigmoidV(double x) { return 1.0 / (1.0 + exp(-x)); }
__device__ __forceinline__ double NormalTailV(double a) {
  return 0.5 * erfcx(a * 0.70710678118654752);
}
__device__ __forceinline__ double ProductErrorV(double a, double b, double p) {
  return fma(a, b, -p);
}

namespace f32 {
using V = float;
constexpr bool kF32 = true;
__device__ __forceinline__ V Splat(double c) { return static_cast<V>(c); }
}  // namespace f32
namespace f64 {
using V = double;
constexpr bool kF32 = false;
__device__ __forceinline__ V Splat(double c) { return c; }
}  // namespace f64

}  // namespace halftone::kernels::functors

#include "halftone/kernels/cuda/device/angle.cuh"

// What the header has from Highway on the CPU. It guards itself by comparing with
// HWY_TARGET_TOGGLE, as headers do that are included once per target.
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#define HT_FUNCTOR_INLINE __device__ __forceinline__
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

namespace halftone::kernels::functors {

// NaN compares unequal and unordered.
struct EqualF {
  template <typename T>
  __device__ __forceinline__ bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqualF {
  template <typename T>
  __device__ __forceinline__ bool operator()(T a, T b) const {
    return a != b;
  }
};
struct LessF {
  template <typename T>
  __device__ __forceinline__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqualF {
  template <typename T>
  __device__ __forceinline__ bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct IsFiniteF {
  template <typename T>
  __device__ __forceinline__ bool operator()(T x) const {
    return isfinite(x);
  }
};
struct PowF {
  __device__ __forceinline__ float operator()(float a, float b) const { return powf(a, b); }
  __device__ __forceinline__ double operator()(double a, double b) const { return pow(a, b); }
};

}  // namespace halftone::kernels::functors
