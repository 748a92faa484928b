// Random numbers on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

enum class RandomKind : uint8_t { kUniform, kNormal, kBernoulli };

// y = shift + scale u or z; of bernoulli u < x.
struct RandomParams {
  RandomKind kind = RandomKind::kUniform;
  DType dtype = DType::kF32;
  uint64_t seed = 0;
  double shift = 0, scale = 1;
  int64_t size = 0;  // above 0
};

// The run count comes from the state. x: of bernoulli alone.
cudaError_t LaunchRandom(const RandomParams& params, const void* x, void* y,
                         const kernels::DeviceRunState* state, cudaStream_t stream);

}  // namespace halftone::cuda
