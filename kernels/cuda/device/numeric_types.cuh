// From a numeric dtype, whole numbers too, to the type that a kernel is compiled for.
#pragma once

#include "halftone/kernels/cuda/device/float_types.cuh"

namespace halftone::cuda {

// f(T()) for the type of a numeric dtype.
template <typename F>
cudaError_t ForNumericType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kI64:
      return f(int64_t());
    case DType::kI32:
      return f(int32_t());
    case DType::kU8:
      return f(uint8_t());
    default:
      return ForFloatType(dtype, f);
  }
}

}  // namespace halftone::cuda
