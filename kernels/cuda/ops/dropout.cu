// dropout: y = kept ? x * scale : 0, the mask from Philox words.
//
// Algorithm: a thread takes a group of 4 elements in row-major order, whose bits one Philox block
// gives, in one access where the group is whole. Channels last, the group's elements lie `channels`
// apart: neighbouring threads then take neighbouring channels where planes are whole groups, and
// each thread one element (and a fourth of its words) where they are not.
// Shared bytes: none. Bound: memory; 16-bit types come near the bound of integer arithmetic. Bytes
// moved: each element read and written once, the minimum.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/philox.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/dropout.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__device__ __forceinline__ T Dropped(const DropoutParams& p, T x, uint32_t word) {
  const bool kept = static_cast<int32_t>(word >> 8) >= p.threshold;
  return Narrow<T>(kept ? Widen(x) * static_cast<Compute<T>>(p.scale) : Compute<T>{0});
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    DropoutKernel(DropoutParams p, const T* x, T* y, bool wide,
                  const kernels::DeviceRunState* state) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int64_t first = group * 4;
  if (first >= p.size) return;
  const PhiloxWords words = PhiloxBlock(p.seed, state->run_count, static_cast<uint64_t>(group));
  if constexpr (sizeof(T) <= 4) {
    if (wide && first + 4 <= p.size) {
      Pack<T, 4> pack = *reinterpret_cast<const Pack<T, 4>*>(x + first);
#pragma unroll
      for (int i = 0; i < 4; ++i) pack.v[i] = Dropped(p, pack.v[i], words.v[i]);
      StoreWhole(pack, y + first);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first + i < p.size) y[first + i] = Dropped(p, x[first + i], words.v[i]);
  }
}

// Channels last, a thread takes a piece of one channel's plane; kPiece elements, neighbours by name.
template <typename T, int kPiece>
__global__ void __launch_bounds__(kThreads)
    DropoutLastKernel(DropoutParams p, const T* x, T* y, const kernels::DeviceRunState* state) {
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (unit >= p.size / kPiece) return;
  const int64_t channels = p.channels.divisor, pieces = p.pieces.divisor;
  const Division by_channel = Divide(unit, p.channels);
  const Division by_plane = Divide(by_channel.quotient, p.pieces);
  const int64_t image = by_plane.quotient, channel = by_channel.rest;
  const int64_t first = ((image * channels + channel) * pieces + by_plane.rest) * kPiece;
  const int64_t at = (by_channel.quotient * kPiece) * channels + channel;
  const PhiloxWords words = PhiloxBlock(p.seed, state->run_count, static_cast<uint64_t>(first / 4));
  if constexpr (kPiece == 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y[at + i * channels] = Dropped(p, x[at + i * channels], words.v[i]);
    }
  } else {
    const auto lane = static_cast<int>(first % 4);
    const uint32_t word = lane == 0   ? words.v[0]
                          : lane == 1 ? words.v[1]
                          : lane == 2 ? words.v[2]
                                      : words.v[3];
    y[at] = Dropped(p, x[at], word);
  }
}

dim3 Grid(int64_t threads) {
  return dim3(static_cast<unsigned>((threads + kThreads - 1) / kThreads));
}

template <typename T>
cudaError_t LaunchTyped(const DropoutParams& p, const void* x_data, void* y_data, bool wide,
                        const kernels::DeviceRunState* state, cudaStream_t stream) {
  const T* const x = static_cast<const T*>(x_data);
  T* const y = static_cast<T*>(y_data);
  if (!p.channels_last) {
    return LaunchKernel(DropoutKernel<T>, Grid((p.size + 3) / 4), kThreads, 0, stream, p, x, y,
                        wide, state);
  }
  const dim3 grid = Grid(p.size / p.piece);
  return p.piece == 4
             ? LaunchKernel(DropoutLastKernel<T, 4>, grid, kThreads, 0, stream, p, x, y, state)
             : LaunchKernel(DropoutLastKernel<T, 1>, grid, kThreads, 0, stream, p, x, y, state);
}

}  // namespace

cudaError_t LaunchDropout(const DropoutParams& params, const void* x, void* y, bool wide,
                          const kernels::DeviceRunState* state, cudaStream_t stream) {
  return ForFloatType(params.dtype, [&](auto zero) {
    return LaunchTyped<decltype(zero)>(params, x, y, wide, state, stream);
  });
}

}  // namespace halftone::cuda
