// softmax, log_softmax and their gradients.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// Plain operands [outer,classes,inner], of elements.
struct SoftmaxShape {
  int64_t outer, classes, inner;
  bool log;
};

// y may be x.
cudaError_t LaunchSoftmax(const SoftmaxShape& shape, DType dtype, const void* x, void* y,
                          cudaStream_t stream);
// dx from the result y and its gradient; dx may be dy.
cudaError_t LaunchSoftmaxGrad(const SoftmaxShape& shape, DType dtype, const void* y, const void* dy,
                              void* dx, cudaStream_t stream);

}  // namespace halftone::cuda
