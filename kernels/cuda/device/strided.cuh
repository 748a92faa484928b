// Offsets of operands from positions, by multiplications where 32 bits are enough.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/device/strided.h"

namespace halftone::cuda {

__device__ inline uint32_t Quotient(uint32_t n, const Divisor& d) {
  return (__umulhi(n, d.factor) + n) >> d.shift;
}

template <int N>
__device__ void Locate(const StridedIndex<N>& index, int64_t position, int64_t (&offsets)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) offsets[k] = 0;
  if (index.narrow) {
    auto rest = static_cast<uint32_t>(position);
#pragma unroll 1
    for (int axis = index.axes - 1; axis > 0; --axis) {
      const uint32_t next = Quotient(rest, index.divisors[axis]);
      const uint32_t at = rest - next * index.divisors[axis].divisor;
#pragma unroll
      for (int k = 0; k < N; ++k) offsets[k] += at * index.strides[axis][k];
      rest = next;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) offsets[k] += rest * index.strides[0][k];
    return;
  }
#pragma unroll 1
  for (int axis = index.axes - 1; axis > 0; --axis) {
    const int64_t next = position / index.extents[axis];
    const int64_t at = position - next * index.extents[axis];
#pragma unroll
    for (int k = 0; k < N; ++k) offsets[k] += at * index.strides[axis][k];
    position = next;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) offsets[k] += position * index.strides[0][k];
}

}  // namespace halftone::cuda
