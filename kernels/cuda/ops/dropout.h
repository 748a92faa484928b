// dropout on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

struct DropoutParams {
  uint64_t seed = 0;
  int32_t threshold = 0;  // kept: the upper 24 bits of the word are at least this
  double scale = 1;       // a float's value unless f64
  DType dtype = DType::kF32;
  int64_t size = 0;  // above 0
  // Channels last: extents of the rank-4 tensor, whose elements are named in row-major order; a thread's piece of
  // a plane is 4 elements where they divide it, else 1.
  bool channels_last = false;
  int piece = 1;
  WideDivisor channels, pieces;  // `pieces` of a plane
};

// The run count comes from the state. y may be x. `wide`: both are aligned to 16 bytes.
cudaError_t LaunchDropout(const DropoutParams& params, const void* x, void* y, bool wide,
                          const kernels::DeviceRunState* state, cudaStream_t stream);

}  // namespace halftone::cuda
