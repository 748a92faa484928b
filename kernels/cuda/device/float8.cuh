// The 8-bit floats on a device, by the rules of core/dtype.h: to nearest even, what is finite
// saturates, what is not stays so.
#pragma once

#include <cuda_fp8.h>

#include "halftone/kernels/cuda/device/pack.cuh"

namespace halftone::cuda {

// Not by NVIDIA's conversion, which drops the sign of a NaN.
template <__nv_fp8_interpretation_t kFormat>
__device__ inline float WidenF8(uint8_t bits) {
  if constexpr (kFormat == __NV_E5M2) {
    __half_raw half;
    half.x = static_cast<uint16_t>(bits << 8);
    return __half2float(__half(half));
  } else {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7F;
    if (magnitude == 0x7F) return BitsOf<float>(sign | 0x7FC00000);
    if (magnitude < 8) {  // below the smallest normal, 2^-6
      return BitsOf<float>(sign | BitsOf<uint32_t>(static_cast<float>(magnitude) * 0x1p-9F));
    }
    return BitsOf<float>(sign | ((magnitude << 20) + ((127 - 7) << 23)));
  }
}

// NVIDIA's saturating conversion makes the largest number of an inf too.
template <__nv_fp8_interpretation_t kFormat, typename T>
__device__ inline uint8_t NarrowF8(T x) {
  constexpr uint8_t kInf = kFormat == __NV_E4M3 ? 0x7F : 0x7C;
  if (x - x != 0 && x == x) return x > 0 ? kInf : kInf | 0x80;
  if constexpr (sizeof(T) == 8) {
    return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, kFormat);
  } else {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kFormat);
  }
}

}  // namespace halftone::cuda
