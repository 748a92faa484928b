// sgd_update and adam_update on the device, many parameters in one launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

struct SgdRule {
  double momentum, dampening, weight_decay, clip_value;
  bool nesterov;
};

struct AdamRule {
  double beta1, beta2, eps, weight_decay, clip_value;
  bool decoupled;
};

// What all parameters of an update share: the scalar operands, in device memory.
struct UpdateScalars {
  const float *lr, *inv_scale, *clip;
  const bool* apply;
  const int64_t* step;
  const kernels::DeviceRunState* state;
};

enum class CopyType : uint8_t { kNone, kF16, kBF16 };

// The arrays of one launch, and of each parameter up to `kStates` of the optimizer's state. Outputs
// may be the inputs. A batch is as large as 4 KiB of parameters allow.
template <int kStates>
struct UpdateBatch {
  static constexpr int kArrays = kStates < 2 ? 60 : 48;
  static constexpr int64_t kChunk = 4096;                 // elements of a block
  static constexpr int kRoom = kStates + (kStates == 0);  // no array is empty

  const void *param[kArrays], *grad[kArrays], *state[kRoom][kArrays];
  void *new_param[kArrays], *new_state[kRoom][kArrays];
  void* copy[kArrays];
  int64_t size[kArrays];
  CopyType copy_type[kArrays];
  ChunkTable<kArrays> table;
};

// Parameters, gradients and states are f32, or all f64. Where *apply is false outputs become their
// inputs, and copies the rounded parameters; nothing is written once the step has a fault.
// UpdateBatch<0>: SGD without momentum, <1>: with, <2>: Adam.
cudaError_t LaunchSgd(const SgdRule& rule, const UpdateScalars& scalars,
                      const UpdateBatch<0>& batch, bool f64, cudaStream_t stream);
cudaError_t LaunchSgd(const SgdRule& rule, const UpdateScalars& scalars,
                      const UpdateBatch<1>& batch, bool f64, cudaStream_t stream);
cudaError_t LaunchAdam(const AdamRule& rule, const UpdateScalars& scalars,
                       const UpdateBatch<2>& batch, bool f64, cudaStream_t stream);

}  // namespace halftone::cuda
