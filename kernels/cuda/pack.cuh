// Neighbouring values that one access moves (16 bytes at most), and the types they are computed in:
// f32 for the 16-bit ones.
#pragma once

#include "halftone/kernels/cuda/device.cuh"

namespace halftone::cuda {

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(sizeof(T) * N <= 16);
  T v[N];
};

// As many as 16 bytes hold.
template <typename T>
inline constexpr int kPackOf = static_cast<int>(16 / sizeof(T));

template <typename T>
struct ComputeType {
  using Type = float;
};
template <>
struct ComputeType<double> {
  using Type = double;
};
template <typename T>
using Compute = typename ComputeType<T>::Type;

__device__ inline double Widen(double x) { return x; }
__device__ inline float Widen(float x) { return x; }
__device__ inline float Widen(__half x) { return __half2float(x); }
__device__ inline float Widen(__nv_bfloat16 x) { return __bfloat162float(x); }

// Rounded once, to nearest even.
template <typename T, typename From>
__device__ T Narrow(From x) {
  if constexpr (std::is_same_v<T, __half>) {
    if constexpr (std::is_same_v<From, double>) {
      return __double2half(x);
    } else {
      return __float2half_rn(x);
    }
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if constexpr (std::is_same_v<From, double>) {
      return __double2bfloat16(x);
    } else {
      return __float2bfloat16_rn(x);
    }
  } else {
    return static_cast<T>(x);
  }
}

// N neighbours at `p`, aligned to all of them.
template <int N, typename T>
__device__ void LoadPack(const T* p, Compute<T> (&values)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(p);
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = Widen(pack.v[i]);
}
template <int N, typename T, typename From>
__device__ void StorePack(const From (&values)[N], T* p) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = Narrow<T>(values[i]);
  *reinterpret_cast<Pack<T, N>*>(p) = pack;
}

}  // namespace halftone::cuda
