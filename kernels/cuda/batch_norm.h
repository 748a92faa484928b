// batch_norm, batch_norm_inference and batch_norm_grad on the device.
#pragma once

#include <cuda_runtime_api.h>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/column_sums.h"

namespace halftone::cuda {

// How the values of x lie: `inner` values of a channel are neighbours (1: channels last, or no
// positions), `lines` values in all belong to each channel.
struct ChannelGeometry {
  int64_t lines = 0, channels = 0, inner = 1;
  // The sums over a channel are cut as those over a column of a [lines, channels] matrix.
  ColumnChunks chunks() const { return {lines, channels}; }
};

// x, y, dy, dx of `dtype`; all others f32, or f64 for f64.
struct BatchNormArrays {
  const void *x, *gamma, *beta, *running_mean, *running_var;
  void *y, *save_mean, *save_invstd, *new_mean, *new_var;
};
struct BatchNormGradArrays {
  const void *x, *dy, *gamma, *mean, *invstd;
  void *dx, *dgamma, *dbeta;
};

// `partials`: chunks().partial_bytes(). Requires: channels of 1 or more, for the first two lines
// too.
cudaError_t LaunchBatchNorm(DType dtype, const ChannelGeometry& geometry, double eps,
                            double momentum, const BatchNormArrays& arrays, PairOfSums* partials,
                            cudaStream_t stream);
// Reads x, gamma, beta and the running statistics, writes y.
cudaError_t LaunchBatchNormInference(DType dtype, const ChannelGeometry& geometry, double eps,
                                     const BatchNormArrays& arrays, cudaStream_t stream);
cudaError_t LaunchBatchNormGrad(DType dtype, const ChannelGeometry& geometry,
                                const BatchNormGradArrays& arrays, PairOfSums* partials,
                                cudaStream_t stream);

}  // namespace halftone::cuda
