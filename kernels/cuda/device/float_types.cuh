// From a dtype to the type that a kernel is compiled for.
#pragma once

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/device.cuh"

namespace halftone::cuda {

// f(T()) for the type of a float dtype.
template <typename F>
cudaError_t ForFloatType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kF64:
      return f(double());
    case DType::kF32:
      return f(float());
    case DType::kF16:
      return f(__half());
    case DType::kBF16:
      return f(__nv_bfloat16());
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
