// f8_quantise and f8_scale_update on the device, and what f8_matmul does beside its product.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

// `amax` is that of the elements that came before, 0 at first, as the bits of a float.
cudaError_t LaunchF8Quantise(DType from, DType to, int64_t size, const void* x, const float* scale,
                             void* y, float* inverse, unsigned* amax, cudaStream_t stream);

struct F8ScaleRule {
  double largest;  // of the format, less the margin
  int32_t length;  // of the history
};

// Outputs may be the inputs. Does nothing once the step has a fault.
cudaError_t LaunchF8ScaleUpdate(const F8ScaleRule& rule, const float* history, const float* scale,
                                const float* amax, float* new_history, float* new_scale,
                                const kernels::DeviceRunState* state, cudaStream_t stream);

// y = product a_inverse b_inverse + bias, of rows of `columns`; `bias` may be null.
struct F8FinishParams {
  int64_t size, columns;
  const float *product, *a_inverse, *b_inverse;
  const void* bias;
  DType bias_dtype, to;
  void* y;
};
cudaError_t LaunchF8Finish(const F8FinishParams& params, cudaStream_t stream);

}  // namespace halftone::cuda
