// Algorithm: a thread makes one element of the result or, channels-last, 16 bytes of neighbouring
// channels; blocks of 256 threads. The gradient gathers: each position of dx
// adds the shares of the windows that reach it, in their order, and is written once.
// Shared bytes: none. Bound: memory. Bytes moved: the result once; overlapping windows read through
// L1 and L2, so that the operand comes from memory about once, the minimum.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/ops/pool.cuh"

namespace halftone::cuda {
namespace {

// The inputs [begin, end) of a window (kernel without dilation), and how far it counts.
struct AvgWindow {
  int begin, end, extent;

  __device__ AvgWindow(const PoolAxis& a, int o, bool count_include_pad) {
    const int start = o * a.stride - a.padding, stop = start + a.kernel;
    begin = start < 0 ? 0 : start;
    end = stop < a.input ? stop : a.input;
    const int padded = a.input + a.padding;
    extent = count_include_pad ? (stop < padded ? stop : padded) - start : end - begin;
  }
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kPoolThreads, kPoolBlocks)
    AvgPoolKernel(PoolShape s, bool count_include_pad, uint32_t packs, const T* x, T* y) {
  const uint32_t i = PoolThread();
  if (i >= packs) return;
  const PoolPoint p(i, s.h.output, s.w.output, static_cast<uint32_t>(s.channels), kPack);
  const AvgWindow rows(s.h, p.h, count_include_pad), columns(s.w, p.w, count_include_pad);
  Compute<T> sum[kPack] = {};
  for (int h = rows.begin; h < rows.end; ++h) {
    const int64_t row = (int64_t{p.plane} * s.h.input + h) * s.w.input;
    for (int w = columns.begin; w < columns.end; ++w) {
      Compute<T> v[kPack];
      LoadPack(x + (row + w) * s.channels + p.channel, v);
#pragma unroll
      for (int c = 0; c < kPack; ++c) sum[c] += v[c];
    }
  }
  const auto divisor = static_cast<Compute<T>>(static_cast<int64_t>(rows.extent) * columns.extent);
#pragma unroll
  for (int c = 0; c < kPack; ++c) sum[c] = sum[c] / divisor;
  StorePack(sum, y + int64_t{i} * kPack);
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kPoolThreads, kPoolBlocks)
    AvgPoolGradKernel(PoolShape s, bool count_include_pad, uint32_t packs, const T* dy, T* dx) {
  const uint32_t i = PoolThread();
  if (i >= packs) return;
  const PoolPoint p(i, s.h.input, s.w.input, static_cast<uint32_t>(s.channels), kPack);
  const PoolWindows rows(s.h, p.h), columns(s.w, p.w);
  Compute<T> sum[kPack] = {};
  for (int oh = rows.first; oh <= rows.last; ++oh) {
    const int64_t height = AvgWindow(s.h, oh, count_include_pad).extent;
    const int64_t row = (int64_t{p.plane} * s.h.output + oh) * s.w.output;
    for (int ow = columns.first; ow <= columns.last; ++ow) {
      const int width = AvgWindow(s.w, ow, count_include_pad).extent;
      const auto divisor = static_cast<Compute<T>>(height * width);
      Compute<T> v[kPack];
      LoadPack(dy + (row + ow) * s.channels + p.channel, v);
#pragma unroll
      for (int c = 0; c < kPack; ++c) sum[c] += v[c] / divisor;
    }
  }
  StorePack(sum, dx + int64_t{i} * kPack);
}

// A kernel with and one without packs; planes of `from_plane` elements make those of `to_plane`.
template <typename T>
cudaError_t Launch(void (*packed)(PoolShape, bool, uint32_t, const T*, T*),
                   void (*single)(PoolShape, bool, uint32_t, const T*, T*), const PoolShape& s,
                   int64_t from_plane, int64_t to_plane, bool count_include_pad, const void* from,
                   void* to, cudaStream_t stream) {
  const bool packs = PoolPacks<T>(s, from, to);
  return LaunchByPlanes(s, to_plane, packs ? kPackOf<T> : 1,
                        [&](const PoolShape& part, unsigned blocks, uint32_t count, int64_t first) {
                          return LaunchKernel(packs ? packed : single, blocks, kPoolThreads, 0,
                                              stream, part, count_include_pad, count,
                                              static_cast<const T*>(from) + first * from_plane,
                                              static_cast<T*>(to) + first * to_plane);
                        });
}

template <typename T>
cudaError_t Forward(const PoolShape& s, bool count_include_pad, const void* x, void* y,
                    cudaStream_t stream) {
  return Launch<T>(AvgPoolKernel<T, kPackOf<T>>, AvgPoolKernel<T, 1>, s,
                   s.channels * s.h.input * s.w.input, s.channels * s.h.output * s.w.output,
                   count_include_pad, x, y, stream);
}

template <typename T>
cudaError_t Gradient(const PoolShape& s, bool count_include_pad, const void* dy, void* dx,
                     cudaStream_t stream) {
  return Launch<T>(AvgPoolGradKernel<T, kPackOf<T>>, AvgPoolGradKernel<T, 1>, s,
                   s.channels * s.h.output * s.w.output, s.channels * s.h.input * s.w.input,
                   count_include_pad, dy, dx, stream);
}

}  // namespace

cudaError_t LaunchAvgPool(const PoolShape& s, DType dtype, bool count_include_pad, const void* x,
                          void* y, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    return Forward<decltype(zero)>(s, count_include_pad, x, y, stream);
  });
}

cudaError_t LaunchAvgPoolGrad(const PoolShape& s, DType dtype, bool count_include_pad,
                              const void* dy, void* dx, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    return Gradient<decltype(zero)>(s, count_include_pad, dy, dx, stream);
  });
}

}  // namespace halftone::cuda
