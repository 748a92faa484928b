// upsample2d and its gradient on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/graph/ops/support/resampling.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

struct UpsampleParams {
  int64_t planes = 0;
  ops::ResampledAxis h, w;
  double h_step = 0, w_step = 0;
  WideDivisor by_rows, by_columns;  // of what is written: y, or dx of the gradient
};

// x [planes, h.input, w.input] to y [planes, h.output, w.output]. Requires: planes.
cudaError_t LaunchUpsample(const UpsampleParams& params, DType dtype, const void* x, void* y,
                           cudaStream_t stream);
cudaError_t LaunchUpsampleGrad(const UpsampleParams& params, DType dtype, const void* dy, void* dx,
                               cudaStream_t stream);

}  // namespace halftone::cuda
