// What the pooling kernels share: which element a thread makes, and the windows around it.
#pragma once

#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/ops/pool.h"

namespace halftone::cuda {

inline constexpr int kPoolThreads = 256;
// On a multiprocessor at least: leaves a thread 80 registers, with which nothing is spilled.
inline constexpr int kPoolBlocks = 3;

// A position of a [planes, height, width, channels] tensor.
struct PoolPoint {
  uint32_t plane, channel;
  int h, w;

  // Of the `i`-th pack of `pack` channels. Numbers of 32 bits: a division of 64 costs several.
  __device__ PoolPoint(uint32_t i, int height, int width, uint32_t channels, uint32_t pack) {
    const uint32_t packs = channels / pack;
    const uint32_t pixel = i / packs;
    const uint32_t row = pixel / static_cast<uint32_t>(width);
    channel = (i - pixel * packs) * pack;
    w = static_cast<int>(pixel - row * static_cast<uint32_t>(width));
    plane = row / static_cast<uint32_t>(height);
    h = static_cast<int>(row - plane * static_cast<uint32_t>(height));
  }
};

// Input position of offset k of window o.
__device__ inline int InputOf(const PoolAxis& a, int o, int k) {
  return o * a.stride - a.padding + k * a.dilation;
}

// The windows [first, last] that reach input position i.
struct PoolWindows {
  int first, last;

  __device__ PoolWindows(const PoolAxis& a, int i) {
    const int span = (a.kernel - 1) * a.dilation + 1;
    const int before = i + a.padding - span;  // the last start of a window that ends before i
    first = before < 0 ? 0 : before / a.stride + 1;
    last = (i + a.padding) / a.stride;
    if (last >= a.output) last = a.output - 1;
  }
};

// The offset of input position i in window o, one of those that reach it; -1 where a dilated window
// passes over it.
__device__ inline int OffsetIn(const PoolAxis& a, int o, int i) {
  const int distance = i + a.padding - o * a.stride;
  if (a.dilation == 1) return distance;
  const int k = distance / a.dilation;
  return k * a.dilation == distance ? k : -1;
}

__device__ inline uint32_t PoolThread() { return blockIdx.x * kPoolThreads + threadIdx.x; }

// Calls launch(part, blocks, packs, first_plane) so that a thread makes each pack of the result,
// whose planes have `plane_size` elements: once, or for as many planes at a time as thread numbers
// of 32 bits reach.
template <typename Launch>
cudaError_t LaunchByPlanes(const PoolShape& s, int64_t plane_size, int pack, const Launch& launch) {
  if (s.planes == 0 || plane_size == 0) return cudaSuccess;
  const int64_t packs = plane_size / pack;
  const int64_t at_once = kMaxPoolPlane / packs;
  for (int64_t first = 0; first < s.planes; first += at_once) {
    PoolShape part = s;
    part.planes = s.planes - first < at_once ? s.planes - first : at_once;
    const int64_t blocks = (part.planes * packs + kPoolThreads - 1) / kPoolThreads;
    const cudaError_t error = launch(part, static_cast<unsigned>(blocks),
                                     static_cast<uint32_t>(part.planes * packs), first);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// Whether packs of kPackOf<T> channels may be used: whole, and 16-byte aligned.
template <typename T>
bool PoolPacks(const PoolShape& s, const void* a, const void* b) {
  return s.channels % kPackOf<T> == 0 &&
         (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
}

}  // namespace halftone::cuda
