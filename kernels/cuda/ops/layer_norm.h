// layer_norm and layer_norm_grad on the device.
#pragma once

#include <cuda_runtime_api.h>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/column_sums.h"

namespace halftone::cuda {

// x, dy, y, dx: rows of `size` values of `dtype`. gamma, beta, mean, rstd, dgamma, dbeta: f32, or
// f64 for f64 rows.
struct LayerNormArrays {
  const void *x, *gamma, *beta;
  void *y, *mean, *rstd;
};
struct LayerNormGradArrays {
  const void *x, *dy, *gamma, *mean, *rstd;
  void *dx, *dgamma, *dbeta;
};

// Requires: rows and size of 1 or more.
cudaError_t LaunchLayerNorm(DType dtype, int64_t rows, int64_t size, double eps,
                            const LayerNormArrays& arrays, cudaStream_t stream);
cudaError_t LaunchLayerNormGradInput(DType dtype, int64_t rows, int64_t size,
                                     const LayerNormGradArrays& arrays, cudaStream_t stream);
// `partials`: chunks.partial_bytes(), of ColumnChunks(rows, size). No rows give zeros.
cudaError_t LaunchLayerNormGradAffine(DType dtype, const ColumnChunks& chunks,
                                      const LayerNormGradArrays& arrays, PairOfSums* partials,
                                      cudaStream_t stream);

}  // namespace halftone::cuda
