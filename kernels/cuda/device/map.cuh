// The kernel of elementwise ops that compute in f32.
//
// A thread computes 8 elements, a block 2,048: neighbours move in accesses of at most 16 bytes, 8
// elements of 16 bits or twice 4 of 32 bits, and neighbouring threads take neighbouring accesses.
// Only the last tile, and operands that no wide access fits, go element by element. dtypes are
// looked at outside the arithmetic: a formula is compiled once for all of them.
#pragma once

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.h"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/strided.cuh"

namespace halftone::cuda {

inline constexpr int kMapThreads = 256;
inline constexpr int kMapElements = 8;  // of a thread

inline dim3 MapGrid(int64_t size) {
  constexpr int64_t kTile = int64_t{kMapThreads} * kMapElements;
  return dim3(static_cast<unsigned>((size + kTile - 1) / kTile));
}

// Position of the thread's element j, where accesses are of `width` elements.
__device__ inline int64_t MapPosition(int width, int j) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kMapThreads * kMapElements);
  return tile + ((j / width) * kMapThreads + static_cast<int>(threadIdx.x)) * width + j % width;
}

template <typename T, int W>
__device__ __forceinline__ void LoadRun(const void* data, int64_t at, bool varies, float* values) {
  const T* const x = static_cast<const T*>(data) + at;
  if (varies) {
    const Pack<T, W> pack = *reinterpret_cast<const Pack<T, W>*>(x);
#pragma unroll
    for (int i = 0; i < W; ++i) values[i] = Widen(pack.v[i]);
  } else {
    const float value = Widen(*x);
#pragma unroll
    for (int i = 0; i < W; ++i) values[i] = value;
  }
}
// A nonzero byte of a bool is true.
__device__ inline float WidenByte(uint8_t x, bool truth) {
  return truth ? (x != 0 ? 1.0f : 0.0f) : static_cast<float>(x);
}

// W neighbours from element `at` on, or one value W times.
template <int W, bool kBytes>
__device__ __forceinline__ void LoadValues(const void* data, DType dtype, int64_t at, bool varies,
                                           float* values) {
  if constexpr (kBytes) {
    if (dtype == DType::kU8 || dtype == DType::kBool) {
      const uint8_t* const x = static_cast<const uint8_t*>(data) + at;
      Pack<uint8_t, W> pack;
      if (varies) {
        pack = *reinterpret_cast<const Pack<uint8_t, W>*>(x);
      } else {
#pragma unroll
        for (int i = 0; i < W; ++i) pack.v[i] = *x;
      }
#pragma unroll
      for (int i = 0; i < W; ++i) values[i] = WidenByte(pack.v[i], dtype == DType::kBool);
      return;
    }
  }
  if (dtype == DType::kF16) {
    LoadRun<__half, W>(data, at, varies, values);
  } else if (dtype == DType::kBF16) {
    LoadRun<__nv_bfloat16, W>(data, at, varies, values);
  } else if constexpr (W <= 4) {
    LoadRun<float, W>(data, at, varies, values);
  }
}

template <typename T, int W, typename R>
__device__ __forceinline__ void StoreRun(void* data, int64_t at, const R* values) {
  Pack<T, W> pack;
#pragma unroll
  for (int i = 0; i < W; ++i) pack.v[i] = Narrow<T>(values[i]);
  StoreWhole(pack, static_cast<T*>(data) + at);
}
// R: bool for a bool result, else float.
template <int W, typename R, bool kBytes>
__device__ __forceinline__ void StoreValues(void* data, DType dtype, int64_t at, const R* values) {
  if constexpr (std::is_same_v<R, bool>) {
    StoreRun<uint8_t, W>(data, at, values);
  } else {
    if constexpr (kBytes) {
      if (dtype == DType::kBool) {
        bool truths[W];
#pragma unroll
        for (int i = 0; i < W; ++i) truths[i] = values[i] != 0.0f;
        StoreRun<uint8_t, W>(data, at, truths);
        return;
      }
    }
    if (dtype == DType::kF16) {
      StoreRun<__half, W>(data, at, values);
    } else if (dtype == DType::kBF16) {
      StoreRun<__nv_bfloat16, W>(data, at, values);
    } else if constexpr (W <= 4) {
      StoreRun<float, W>(data, at, values);
    }
  }
}

template <typename F, typename V>
__device__ __forceinline__ auto Apply(const F& f, const V& v, int i) {
  if constexpr (std::extent_v<V> == 1) {
    return f(v[0][i]);
  } else {
    return f(v[0][i], v[1][i]);
  }
}

// The thread's accesses of operand k.
template <int W, bool kBytes, int N>
__device__ __forceinline__ void LoadTile(const MapParams<N>& p, float (&v)[N][kMapElements]) {
#pragma unroll
  for (int run = 0; run < kMapElements / W; ++run) {
    int64_t at[N];
    Locate(p.index, MapPosition(W, run * W), at);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      LoadValues<W, kBytes>(p.x[k], p.x_dtypes[k], at[k], p.index.strides[p.index.axes - 1][k] != 0,
                            v[k] + run * W);
    }
  }
}

template <typename F, int N, bool kBytes>
__global__ void __launch_bounds__(kMapThreads) MapKernel(MapParams<N> p) {
  using R = decltype(Apply(std::declval<F>(), std::declval<float[N][1]>(), 0));
  const F f = kernels::functors::f32::With<F>(static_cast<float>(p.numbers[0]),
                                              static_cast<float>(p.numbers[1]));
  if (p.width > 1 && MapPosition(p.width, kMapElements - 1) < p.size) {
    float v[N][kMapElements];
    if (p.width == 8) {
      LoadTile<8, kBytes>(p, v);
    } else {
      LoadTile<4, kBytes>(p, v);
    }
    R y[kMapElements];
#pragma unroll
    for (int i = 0; i < kMapElements; ++i) y[i] = Apply(f, v, i);
    if (p.width == 8) {
      StoreValues<8, R, kBytes>(p.y, p.y_dtype, MapPosition(8, 0), y);
    } else {
      StoreValues<4, R, kBytes>(p.y, p.y_dtype, MapPosition(4, 0), y);
      StoreValues<4, R, kBytes>(p.y, p.y_dtype, MapPosition(4, 4), y + 4);
    }
    return;
  }
#pragma unroll 1
  for (int j = 0; j < kMapElements; ++j) {
    const int64_t position = MapPosition(p.width, j);
    if (position >= p.size) continue;
    int64_t at[N];
    Locate(p.index, position, at);
    float v[N][1];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      LoadValues<1, kBytes>(p.x[k], p.x_dtypes[k], at[k], /*varies=*/true, v[k]);
    }
    const R y[1] = {Apply(f, v, 0)};
    StoreValues<1, R, kBytes>(p.y, p.y_dtype, position, y);
  }
}

template <typename F, int N, bool kBytes = false>
cudaError_t LaunchMap(const MapParams<N>& params, cudaStream_t stream) {
  return LaunchKernel(MapKernel<F, N, kBytes>, MapGrid(params.size), kMapThreads, 0, stream,
                      params);
}

}  // namespace halftone::cuda
