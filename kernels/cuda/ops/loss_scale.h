// loss_scale_update on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

struct LossScaleRule {
  double growth, backoff, min_scale, max_scale;
  int32_t interval, hysteresis;
  bool dynamic;
};

// Inputs and outputs of the op in the order of its ports; outputs may be the inputs.
struct LossScaleArrays {
  const float* scale;
  const int32_t *tracker, *hysteresis_left;
  const int64_t *total, *skipped, *consecutive;
  const bool* finite;
  float* new_scale;
  int32_t *new_tracker, *new_hysteresis_left;
  int64_t *new_total, *new_skipped, *new_consecutive;
};

// Does nothing once the step has a fault.
cudaError_t LaunchLossScale(const LossScaleRule& rule, const LossScaleArrays& arrays,
                            const kernels::DeviceRunState* state, cudaStream_t stream);

}  // namespace halftone::cuda
