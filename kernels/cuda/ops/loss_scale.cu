// The state of a loss scaler after a step: one thread, 33 bytes read and 32 written.
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/ops/loss_scale.h"

namespace halftone::cuda {
namespace {

__global__ void LossScaleKernel(LossScaleRule rule, LossScaleArrays a,
                                const kernels::DeviceRunState* state) {
  if (state->fault_id != 0) return;
  float scale = *a.scale;
  int32_t tracker = *a.tracker;
  int32_t left = *a.hysteresis_left;
  const int64_t total = *a.total, skipped = *a.skipped, consecutive = *a.consecutive;
  const bool finite = *a.finite;
  if (rule.dynamic && finite) {
    left = rule.hysteresis;
    // A tracker at its limit may come from a state file; one more would not fit.
    if (tracker >= rule.interval - 1) {
      tracker = 0;
      const float grown = static_cast<float>(scale * rule.growth);
      if (isfinite(grown) && static_cast<double>(grown) <= rule.max_scale) scale = grown;
    } else {
      ++tracker;
    }
  } else if (rule.dynamic) {
    tracker = 0;
    left = left > 1 ? left - 1 : 0;
    const double floor = fmin(static_cast<double>(scale), rule.min_scale);  // never raises
    if (left == 0) scale = static_cast<float>(fmax(scale * rule.backoff, floor));
  }
  *a.new_scale = scale;
  *a.new_tracker = tracker;
  *a.new_hysteresis_left = left;
  *a.new_total = total + 1;
  *a.new_skipped = skipped + (finite ? 0 : 1);
  *a.new_consecutive = finite ? 0 : consecutive + 1;
}

}  // namespace

cudaError_t LaunchLossScale(const LossScaleRule& rule, const LossScaleArrays& arrays,
                            const kernels::DeviceRunState* state, cudaStream_t stream) {
  return LaunchKernel(LossScaleKernel, 1, 1, 0, stream, rule, arrays, state);
}

}  // namespace halftone::cuda
