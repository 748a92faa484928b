// Device code of wide_divisor.h.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

struct Division {
  int64_t quotient, rest;
};

__device__ __forceinline__ Division Divide(int64_t n, const WideDivisor& d) {
  const auto wide = static_cast<unsigned long long>(n);
  const auto quotient = static_cast<int64_t>((__umul64hi(wide, d.factor) + wide) >> d.shift);
  return {quotient, n - quotient * d.divisor};
}

}  // namespace halftone::cuda
