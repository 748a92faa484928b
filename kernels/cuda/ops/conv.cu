// Direct convolutions: for what the library does not do (f64, operands of two layouts, empty ones)
// and wherever it refuses.
//
// Forward and input gradient: a thread makes one element of the result, neighbouring threads those
// that are neighbours in memory; it walks over channels and window. Blocks of 256 threads stride
// over the result. No shared memory.
// Weight gradient: 8 lanes of a warp make one element of dw; they stride over images and output
// positions, then their sums are reduced.
// Sums are in f32 (f64 for f64), in an order that depends on the shape alone.
// Expected bound: loads that hit L1 and L2, one or two for each multiplication; operands are read
// once for each point of the window, the result is written once.
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/conv.h"

namespace halftone::cuda {
namespace {

// Beside it __launch_bounds__ has a 1: without it ptxas spills a few registers for sm_80 and sm_120, to
// fit more blocks on a multiprocessor.
constexpr int kThreads = 256;
constexpr int kGroup = 8;  // lanes that share an element of a weight gradient
constexpr int64_t kMaxBlocks = int64_t{1} << 20;

__device__ float MultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double MultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

__device__ int64_t FirstIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x);
}
__device__ int64_t IndexStep() { return static_cast<int64_t>(gridDim.x) * kThreads; }

struct Position {
  int64_t n, c, d, h, w;
};

// Element `i` of [n,c,d,h,w] as threads walk over it. A depth of 1, that of conv2d, costs no
// division.
__device__ Position PositionOf(int64_t i, int64_t channels, int64_t depth, int64_t height,
                               int64_t width, bool channels_last) {
  Position p;
  p.d = 0;
  if (channels_last) {
    p.c = i % channels;
    i /= channels;
    p.w = i % width;
    i /= width;
    p.h = i % height;
    i /= height;
    p.n = i;
    if (depth > 1) {
      p.d = i % depth;
      p.n = i / depth;
    }
  } else {
    p.w = i % width;
    i /= width;
    p.h = i % height;
    i /= height;
    if (depth > 1) {
      p.d = i % depth;
      i /= depth;
    }
    p.c = i % channels;
    p.n = i / channels;
  }
  return p;
}

__device__ int64_t OffsetOf(const Position& p, const ConvStrides& s) {
  return p.n * s.n + p.c * s.c + p.d * s.d + p.h * s.h + p.w * s.w;
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) ForwardKernel(ConvParams p, int64_t count) {
  using Acc = Compute<T>;
  const T* const x = static_cast<const T*>(p.x);
  const T* const weight = static_cast<const T*>(p.weight);
  const int64_t c_group = p.c / p.groups, o_group = p.o / p.groups;
  for (int64_t i = FirstIndex(); i < count; i += IndexStep()) {
    const Position at = PositionOf(i, p.o, p.d.output, p.h.output, p.w.output, p.channels_last);
    const int64_t plane = at.d * p.d.stride - p.d.padding;
    const int64_t row = at.h * p.h.stride - p.h.padding;
    const int64_t column = at.w * p.w.stride - p.w.padding;
    const T* const image = x + at.n * p.x_strides.n + at.c / o_group * c_group * p.x_strides.c;
    const T* filter = weight + at.c * c_group * p.d.kernel * p.h.kernel * p.w.kernel;
    Acc sum = 0;
    for (int64_t c = 0; c < c_group; ++c) {
      for (int64_t m = 0; m < p.d.kernel; ++m) {
        const int64_t d = plane + m * p.d.dilation;
        if (d < 0 || d >= p.d.input) {
          filter += p.h.kernel * p.w.kernel;
          continue;
        }
        const T* const from = image + c * p.x_strides.c + d * p.x_strides.d;
        for (int64_t k = 0; k < p.h.kernel; ++k) {
          const int64_t h = row + k * p.h.dilation;
          for (int64_t l = 0; l < p.w.kernel; ++l, ++filter) {
            const int64_t w = column + l * p.w.dilation;
            if (h < 0 || h >= p.h.input || w < 0 || w >= p.w.input) continue;
            const T value = from[h * p.x_strides.h + w * p.x_strides.w];
            sum = MultiplyAdd(Widen(value), Widen(*filter), sum);
          }
        }
      }
    }
    if (p.bias != nullptr) {
      sum += p.bias_is_f32 ? static_cast<Acc>(static_cast<const float*>(p.bias)[at.c])
                           : Widen(static_cast<const T*>(p.bias)[at.c]);
    }
    static_cast<T*>(p.result)[OffsetOf(at, p.y_strides)] = Narrow<T>(sum);
  }
}

// The output position whose offset `k` reads `input`, or -1.
__device__ int64_t OutputAt(const ConvAxis& axis, int64_t input, int64_t k) {
  const int64_t start = input + axis.padding - k * axis.dilation;
  if (start < 0 || start % axis.stride != 0) return -1;
  const int64_t output = start / axis.stride;
  return output < axis.output ? output : -1;
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) GradInputKernel(ConvParams p, int64_t count) {
  using Acc = Compute<T>;
  const T* const dy = static_cast<const T*>(p.y);
  const T* const weight = static_cast<const T*>(p.weight);
  const int64_t c_group = p.c / p.groups, o_group = p.o / p.groups;
  const int64_t window = p.d.kernel * p.h.kernel * p.w.kernel;
  for (int64_t i = FirstIndex(); i < count; i += IndexStep()) {
    const Position at = PositionOf(i, p.c, p.d.input, p.h.input, p.w.input, p.channels_last);
    const int64_t first_o = at.c / c_group * o_group;
    const T* const image = dy + at.n * p.y_strides.n + first_o * p.y_strides.c;
    const T* const filters = weight + (first_o * c_group + at.c % c_group) * window;
    Acc sum = 0;
    for (int64_t m = 0; m < p.d.kernel; ++m) {
      const int64_t d = OutputAt(p.d, at.d, m);
      if (d < 0) continue;
      for (int64_t k = 0; k < p.h.kernel; ++k) {
        const int64_t h = OutputAt(p.h, at.h, k);
        if (h < 0) continue;
        for (int64_t l = 0; l < p.w.kernel; ++l) {
          const int64_t w = OutputAt(p.w, at.w, l);
          if (w < 0) continue;
          const T* const from = image + d * p.y_strides.d + h * p.y_strides.h + w * p.y_strides.w;
          const T* const filter = filters + (m * p.h.kernel + k) * p.w.kernel + l;
#pragma unroll 1
          for (int64_t o = 0; o < o_group; ++o) {
            sum = MultiplyAdd(Widen(from[o * p.y_strides.c]), Widen(filter[o * c_group * window]),
                              sum);
          }
        }
      }
    }
    static_cast<T*>(p.result)[OffsetOf(at, p.x_strides)] = Narrow<T>(sum);
  }
}

template <typename T, typename Out>
__global__ void __launch_bounds__(kThreads, 1) GradWeightKernel(ConvParams p, int64_t count) {
  using Acc = Compute<T>;
  const T* const x = static_cast<const T*>(p.x);
  const T* const dy = static_cast<const T*>(p.y);
  const int64_t c_group = p.c / p.groups, o_group = p.o / p.groups;
  const int64_t positions = p.n * p.d.output * p.h.output * p.w.output;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  // Of a warp's first element, so that its lanes stay together.
  const int64_t step = IndexStep() / kGroup;
  for (int64_t first = (FirstIndex() - lane) / kGroup; first < count; first += step) {
    const int64_t e = first + lane / kGroup;
    Acc sum = 0;
    if (e < count) {
      // n: the filter
      const Position at = PositionOf(e, c_group, p.d.kernel, p.h.kernel, p.w.kernel, false);
      const T* const x_channel = x + (at.n / o_group * c_group + at.c) * p.x_strides.c;
      const T* const y_channel = dy + at.n * p.y_strides.c;
      for (int64_t i = lane % kGroup; i < positions; i += kGroup) {
        const Position y = PositionOf(i, 1, p.d.output, p.h.output, p.w.output, false);
        const int64_t d = y.d * p.d.stride - p.d.padding + at.d * p.d.dilation;
        const int64_t h = y.h * p.h.stride - p.h.padding + at.h * p.h.dilation;
        const int64_t w = y.w * p.w.stride - p.w.padding + at.w * p.w.dilation;
        if (d < 0 || d >= p.d.input || h < 0 || h >= p.h.input || w < 0 || w >= p.w.input) {
          continue;
        }
        const T x_value = x_channel[OffsetOf({y.n, 0, d, h, w}, p.x_strides)];
        sum = MultiplyAdd(Widen(x_value), Widen(y_channel[OffsetOf(y, p.y_strides)]), sum);
      }
    }
    sum = WarpReduce<kGroup>(sum, Add());
    if (e < count && lane % kGroup == 0) static_cast<Out*>(p.result)[e] = Narrow<Out>(sum);
  }
}

dim3 BlocksOfThreads(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks));
}

template <typename T, typename Out>
cudaError_t Launch(const ConvParams& p, ConvProduct product, cudaStream_t stream) {
  int64_t count = p.o * (p.c / p.groups) * p.d.kernel * p.h.kernel * p.w.kernel;
  if (product == ConvProduct::kForward) count = p.n * p.o * p.d.output * p.h.output * p.w.output;
  if (product == ConvProduct::kGradInput) count = p.n * p.c * p.d.input * p.h.input * p.w.input;
  if (count == 0) return cudaSuccess;
  if (product == ConvProduct::kGradWeight) {
    return LaunchKernel(GradWeightKernel<T, Out>, BlocksOfThreads(count * kGroup), kThreads, 0,
                        stream, p, count);
  }
  if constexpr (std::is_same_v<T, Out>) {
    if (product == ConvProduct::kForward) {
      return LaunchKernel(ForwardKernel<T>, BlocksOfThreads(count), kThreads, 0, stream, p, count);
    }
    return LaunchKernel(GradInputKernel<T>, BlocksOfThreads(count), kThreads, 0, stream, p, count);
  }
  return cudaErrorInvalidValue;
}

template <typename T>
cudaError_t LaunchLow(const ConvParams& p, ConvProduct product, DType result, cudaStream_t stream) {
  return result == DType::kF32 ? Launch<T, float>(p, product, stream)
                               : Launch<T, T>(p, product, stream);
}

}  // namespace

cudaError_t LaunchConv(const ConvParams& p, ConvProduct product, DType operands, DType result,
                       cudaStream_t stream) {
  switch (operands) {
    case DType::kF64:
      return Launch<double, double>(p, product, stream);
    case DType::kF32:
      return Launch<float, float>(p, product, stream);
    case DType::kF16:
      return LaunchLow<__half>(p, product, result, stream);
    case DType::kBF16:
      return LaunchLow<__nv_bfloat16>(p, product, result, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
