// argmax along one axis.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

// x [outer,classes,inner]; y [outer,inner] of i64, the first of equals; NaN counts as largest.
// Requires: classes > 0.
struct ArgmaxParams {
  int64_t outer, classes;
  WideDivisor inner;
  const void* x;
  int64_t* y;
};
cudaError_t LaunchArgmax(const ArgmaxParams& params, DType x, cudaStream_t stream);

}  // namespace halftone::cuda
