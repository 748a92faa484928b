// batch_norm, batch_norm_inference and batch_norm_grad on the device.
#pragma once

#include <cuda_runtime_api.h>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/channel_cut.h"

namespace halftone::cuda {

// x, y, dy, dx of the dtype given; all others f32, or f64 for f64.
struct BatchNormArrays {
  const void *x, *gamma, *beta, *running_mean, *running_var;
  void *y, *save_mean, *save_invstd, *new_mean, *new_var;
};
// What an element y = (x - mean - low) scale + shift needs of its channel.
struct BatchNormNumbers {
  const void *mean, *low, *scale, *shift;
};
struct BatchNormGradArrays {
  const void *x, *dy, *gamma, *mean, *invstd;
  void *dx, *dgamma, *dbeta;
};

// What the functions below need: results of chunks, and what the last pass needs of each channel.
inline size_t BatchNormWorkspace(const ChannelCut& cut) {
  return static_cast<size_t>(cut.channels) *
         (static_cast<size_t>(cut.chunks) * 2 * sizeof(double) + 4 * sizeof(double));
}

// Requires of all: channels of 1 or more, for the first two lines too.
cudaError_t LaunchBatchNorm(DType dtype, const ChannelCut& cut, double eps, double momentum,
                            const BatchNormArrays& arrays, void* workspace, cudaStream_t stream);
// The same without y and beta; `low` and `scale` as of batch_norm_stats.
cudaError_t LaunchBatchNormStats(DType dtype, const ChannelCut& cut, double eps, double momentum,
                                 const BatchNormArrays& arrays, void* low, void* scale,
                                 void* workspace, cudaStream_t stream);
// y, which may be x, from the numbers of each channel.
cudaError_t LaunchBatchNormApply(DType dtype, const ChannelCut& cut, const void* x,
                                 const BatchNormNumbers& numbers, void* y, cudaStream_t stream);
// Reads x, gamma, beta and the running statistics, writes y, which may be x.
cudaError_t LaunchBatchNormInference(DType dtype, const ChannelCut& cut, double eps,
                                     const BatchNormArrays& arrays, void* workspace,
                                     cudaStream_t stream);
cudaError_t LaunchBatchNormGrad(DType dtype, const ChannelCut& cut,
                                const BatchNormGradArrays& arrays, void* workspace,
                                cudaStream_t stream);

}  // namespace halftone::cuda
