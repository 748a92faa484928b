// upsample2d: a thread a pixel of y, which reads up to four of x. Its gradient: a thread a pixel of
// dx, which finds the rows and columns of y that read it and adds their dy by their weights, row by
// row, in f64: no atomics, one order. Shared bytes: none. Bound: memory; the gradient of a large
// scale is bound by the pixels of y that one thread adds. Bytes moved: both images once, neighbours
// again from the caches.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/upsample2d.h"

namespace halftone::cuda {
namespace {

constexpr int kUpsampleThreads = 256;

dim3 UpsampleGrid(int64_t pixels) {
  const int64_t blocks = (pixels + kUpsampleThreads - 1) / kUpsampleThreads;
  const int64_t most = int64_t{1} << 24;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

// Calls body(pixel, plane, row, column) for this thread's pixels of what is written.
template <typename Body>
__device__ void ForPixels(const UpsampleParams& p, const Body& body) {
  const int64_t pixels = p.planes * p.by_rows.divisor * p.by_columns.divisor;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kUpsampleThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kUpsampleThreads + threadIdx.x; i < pixels;
       i += step) {
    const Division line = Divide(i, p.by_columns), plane = Divide(line.quotient, p.by_rows);
    body(i, plane.quotient, plane.rest, line.rest);
  }
}

// Between a and b; what a weight of 0 leaves out may be infinite.
template <typename V>
__device__ V Blend(V a, V b, V weight) {
  return weight == 0 ? a : (1 - weight) * a + weight * b;
}

template <typename T>
__global__ void __launch_bounds__(kUpsampleThreads)
    UpsampleKernel(UpsampleParams p, const T* x, T* y) {
  using V = Compute<T>;
  ForPixels(p, [&](int64_t i, int64_t plane, int64_t row, int64_t column) {
    const ops::Tap r = p.h.at(row, p.h_step), c = p.w.at(column, p.w_step);
    const T* low = x + (plane * p.h.input + r.low) * p.w.input;
    if (p.w.nearest) {
      y[i] = low[c.low];
      return;
    }
    const T* high = x + (plane * p.h.input + r.high) * p.w.input;
    const V down = static_cast<V>(r.weight), across = static_cast<V>(c.weight);
    y[i] = Narrow<T>(Blend(Blend(Widen(low[c.low]), Widen(high[c.low]), down),
                           Blend(Widen(low[c.high]), Widen(high[c.high]), down), across));
  });
}

template <typename T>
__global__ void __launch_bounds__(kUpsampleThreads)
    UpsampleGradKernel(UpsampleParams p, const T* dy, T* dx) {
  ForPixels(p, [&](int64_t i, int64_t plane, int64_t row, int64_t column) {
    int64_t top, bottom, left, right;
    p.h.readers(row, p.h_step, &top, &bottom);
    p.w.readers(column, p.w_step, &left, &right);
    double sum = 0;
#pragma unroll 1
    for (int64_t r = top; r < bottom; ++r) {
      const double down = p.h.at(r, p.h_step).of(row);
      if (down == 0) continue;
      const T* from = dy + (plane * p.h.output + r) * p.w.output;
      double line = 0;
#pragma unroll 1
      for (int64_t c = left; c < right; ++c) {
        const double across = p.w.at(c, p.w_step).of(column);
        if (across != 0) line += across * static_cast<double>(Widen(from[c]));
      }
      sum += down * line;
    }
    dx[i] = Narrow<T>(sum);
  });
}

}  // namespace

cudaError_t LaunchUpsample(const UpsampleParams& p, DType dtype, const void* x, void* y,
                           cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    return LaunchKernel(UpsampleKernel<T>, UpsampleGrid(p.planes * p.h.output * p.w.output),
                        kUpsampleThreads, 0, stream, p, static_cast<const T*>(x),
                        static_cast<T*>(y));
  });
}

cudaError_t LaunchUpsampleGrad(const UpsampleParams& p, DType dtype, const void* dy, void* dx,
                               cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    return LaunchKernel(UpsampleGradKernel<T>, UpsampleGrid(p.planes * p.h.input * p.w.input),
                        kUpsampleThreads, 0, stream, p, static_cast<const T*>(dy),
                        static_cast<T*>(dx));
  });
}

}  // namespace halftone::cuda
