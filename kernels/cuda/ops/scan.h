// cumsum and prod on the device, along the middle axis of x [outer, size, inner].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

// Sums and products of floats are f64, of integers wrap.
struct ScanParams {
  int64_t outer = 1, size = 0;
  WideDivisor inner;
  bool reverse = false;
  const void* x = nullptr;
  void* y = nullptr;
};

// y like x. Requires: elements.
cudaError_t LaunchCumsum(const ScanParams& params, DType dtype, cudaStream_t stream);
// y [outer, inner]. Requires: results.
cudaError_t LaunchProd(const ScanParams& params, DType dtype, cudaStream_t stream);

}  // namespace halftone::cuda
