// pad on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/graph/ops/support/padding.h"
#include "halftone/kernels/cuda/device/strided.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

struct PadAxis {
  WideDivisor extent;            // of y
  int64_t before, size, stride;  // size, stride: of x
};
// Axes innermost first, neighbours that are not padded merged.
struct PadParams {
  ops::PadMode mode = ops::PadMode::kConstant;
  int axes = 0;
  PadAxis axis[kMaxAxes] = {};
  int64_t size = 0;  // of y, above 0
  int element_size = 1;
  uint64_t value = 0;  // the bytes of an element
};

cudaError_t LaunchPad(const PadParams& params, const void* x, void* y, cudaStream_t stream);

}  // namespace halftone::cuda
