// Algorithm: a thread makes one element of the result or, channels-last, 16 bytes of neighbouring
// channels; blocks of 256 threads. The gradient gathers: each position of dx
// asks the windows that reach it whether they picked it, in their order, and is written once:
// deterministic, no clearing pass, no atomics.
// Shared bytes: none. Bound: memory. Bytes moved: the result once; overlapping windows read through
// L1 and L2, so that the operand comes from memory about once, the minimum.
#include <cmath>

#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/ops/pool.cuh"

namespace halftone::cuda {
namespace {

template <typename T, typename Index, int kPack>
__global__ void __launch_bounds__(kPoolThreads, kPoolBlocks)
    MaxPoolKernel(PoolShape s, uint32_t packs, const T* x, T* y, Index* index) {
  const uint32_t i = PoolThread();
  if (i >= packs) return;
  const PoolPoint p(i, s.h.output, s.w.output, static_cast<uint32_t>(s.channels), kPack);
  Compute<T> best[kPack];
  int at[kPack];
#pragma unroll
  for (int c = 0; c < kPack; ++c) {
    best[c] = -HUGE_VALF;
    at[c] = -1;
  }
  for (int kh = 0; kh < s.h.kernel; ++kh) {
    const int h = InputOf(s.h, p.h, kh);
    if (h < 0 || h >= s.h.input) continue;
    const int64_t row = (int64_t{p.plane} * s.h.input + h) * s.w.input;
    for (int kw = 0; kw < s.w.kernel; ++kw) {
      const int w = InputOf(s.w, p.w, kw);
      if (w < 0 || w >= s.w.input) continue;
      const int offset = kh * s.w.kernel + kw;
      Compute<T> v[kPack];
      LoadPack(x + (row + w) * s.channels + p.channel, v);
#pragma unroll
      for (int c = 0; c < kPack; ++c) {
        // The first of equals; NaN wins, and nothing is greater than it.
        if (at[c] < 0 || v[c] > best[c] || (isnan(v[c]) && !isnan(best[c]))) {
          best[c] = v[c];
          at[c] = offset;
        }
      }
    }
  }
  StorePack(best, y + int64_t{i} * kPack);
  Pack<Index, kPack> offsets;
#pragma unroll
  for (int c = 0; c < kPack; ++c) offsets.v[c] = static_cast<Index>(at[c] < 0 ? 0 : at[c]);
  StoreWhole(offsets, index + int64_t{i} * kPack);
}

template <typename T, typename Index, int kPack>
__global__ void __launch_bounds__(kPoolThreads, kPoolBlocks)
    MaxPoolGradKernel(PoolShape s, uint32_t packs, const T* dy, const Index* index, T* dx) {
  const uint32_t i = PoolThread();
  if (i >= packs) return;
  const PoolPoint p(i, s.h.input, s.w.input, static_cast<uint32_t>(s.channels), kPack);
  const PoolWindows rows(s.h, p.h), columns(s.w, p.w);
  Compute<T> sum[kPack] = {};
  for (int oh = rows.first; oh <= rows.last; ++oh) {
    const int kh = OffsetIn(s.h, oh, p.h);
    if (kh < 0) continue;
    const int64_t row = (int64_t{p.plane} * s.h.output + oh) * s.w.output;
    for (int ow = columns.first; ow <= columns.last; ++ow) {
      const int kw = OffsetIn(s.w, ow, p.w);
      if (kw < 0) continue;
      const int mine = kh * s.w.kernel + kw;
      const int64_t e = (row + ow) * s.channels + p.channel;
      const auto offsets = *reinterpret_cast<const Pack<Index, kPack>*>(index + e);
      Compute<T> v[kPack];
      LoadPack(dy + e, v);
#pragma unroll
      for (int c = 0; c < kPack; ++c) {
        if (static_cast<int>(offsets.v[c]) == mine) sum[c] += v[c];
      }
    }
  }
  StorePack(sum, dx + int64_t{i} * kPack);
}

// Wide indices (windows of more than 256 offsets) are rare: no packs.
template <typename T>
cudaError_t Forward(const PoolShape& s, bool wide_index, const void* x, void* y, void* index,
                    cudaStream_t stream) {
  const int64_t x_plane = s.channels * s.h.input * s.w.input;
  const int64_t y_plane = s.channels * s.h.output * s.w.output;
  const auto launch = [&](auto kernel, auto* offsets, int pack) {
    return LaunchByPlanes(
        s, y_plane, pack, [&](const PoolShape& part, unsigned blocks, uint32_t packs, int64_t p) {
          return LaunchKernel(kernel, blocks, kPoolThreads, 0, stream, part, packs,
                              static_cast<const T*>(x) + p * x_plane,
                              static_cast<T*>(y) + p * y_plane, offsets + p * y_plane);
        });
  };
  if (wide_index) return launch(MaxPoolKernel<T, int32_t, 1>, static_cast<int32_t*>(index), 1);
  auto* const bytes = static_cast<uint8_t*>(index);
  if (!PoolPacks<T>(s, x, y)) return launch(MaxPoolKernel<T, uint8_t, 1>, bytes, 1);
  return launch(MaxPoolKernel<T, uint8_t, kPackOf<T>>, bytes, kPackOf<T>);
}

template <typename T>
cudaError_t Gradient(const PoolShape& s, bool wide_index, const void* dy, const void* index,
                     void* dx, cudaStream_t stream) {
  const int64_t x_plane = s.channels * s.h.input * s.w.input;
  const int64_t y_plane = s.channels * s.h.output * s.w.output;
  const auto launch = [&](auto kernel, const auto* offsets, int pack) {
    return LaunchByPlanes(
        s, x_plane, pack, [&](const PoolShape& part, unsigned blocks, uint32_t packs, int64_t p) {
          return LaunchKernel(kernel, blocks, kPoolThreads, 0, stream, part, packs,
                              static_cast<const T*>(dy) + p * y_plane, offsets + p * y_plane,
                              static_cast<T*>(dx) + p * x_plane);
        });
  };
  if (wide_index) {
    return launch(MaxPoolGradKernel<T, int32_t, 1>, static_cast<const int32_t*>(index), 1);
  }
  const auto* const bytes = static_cast<const uint8_t*>(index);
  if (!PoolPacks<T>(s, dy, dx)) return launch(MaxPoolGradKernel<T, uint8_t, 1>, bytes, 1);
  return launch(MaxPoolGradKernel<T, uint8_t, kPackOf<T>>, bytes, kPackOf<T>);
}

}  // namespace

cudaError_t LaunchMaxPool(const PoolShape& s, DType dtype, bool wide_index, const void* x, void* y,
                          void* index, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    return Forward<decltype(zero)>(s, wide_index, x, y, index, stream);
  });
}

cudaError_t LaunchMaxPoolGrad(const PoolShape& s, DType dtype, bool wide_index, const void* dy,
                              const void* index, void* dx, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    return Gradient<decltype(zero)>(s, wide_index, dy, index, dx, stream);
  });
}

}  // namespace halftone::cuda
