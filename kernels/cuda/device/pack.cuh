// Neighbouring values that one access moves (16 bytes at most), and the types they are computed in:
// f32 for the 16-bit ones.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"

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

template <typename Bits, typename From>
__device__ Bits BitsOf(const From& from) {
  static_assert(sizeof(Bits) == sizeof(From));
  Bits bits;
  memcpy(&bits, &from, sizeof(bits));
  return bits;
}

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

// One store of all of `pack` at `p` in global memory, aligned to it. Assigned plainly, a pack in
// unrolled code is taken apart into stores of its elements: nvcc does not put them together again.
template <typename T, int N>
__device__ void StoreWhole(const Pack<T, N>& pack, T* p) {
  if constexpr (N > 1 && sizeof(pack) == 16) {
    __stwb(reinterpret_cast<uint4*>(p), BitsOf<uint4>(pack));
  } else if constexpr (N > 1 && sizeof(pack) == 8) {
    __stwb(reinterpret_cast<uint2*>(p), BitsOf<uint2>(pack));
  } else if constexpr (N > 1 && sizeof(pack) == 4) {
    __stwb(reinterpret_cast<unsigned*>(p), BitsOf<unsigned>(pack));
  } else {
    *reinterpret_cast<Pack<T, N>*>(p) = pack;
  }
}

// N neighbours at `p`, aligned to all of them.
template <int N, typename T>
__device__ Pack<T, N> LoadWhole(const T* p) {
  return *reinterpret_cast<const Pack<T, N>*>(p);
}
template <int N, typename T>
__device__ void Widen(const Pack<T, N>& pack, Compute<T> (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = Widen(pack.v[i]);
}
template <int N, typename T>
__device__ void LoadPack(const T* p, Compute<T> (&values)[N]) {
  Widen(LoadWhole<N>(p), values);
}
template <int N, typename T, typename From>
__device__ void StorePack(const From (&values)[N], T* p) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = Narrow<T>(values[i]);
  StoreWhole(pack, p);
}

}  // namespace halftone::cuda
