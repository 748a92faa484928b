// grad_stats, grad_squares and grad_stats_of_squares on the device: finite check and norm of all gradients of a
// step in one pass.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/chunk_table.h"

namespace halftone::cuda {

// The gradients of one launch, as many as 4 KiB of parameters allow.
struct GradBatch {
  static constexpr int kArrays = 160;
  static constexpr int64_t kChunk = 8192;  // elements of a block

  const void* grad[kArrays];
  int64_t size[kArrays];
  DType dtype[kArrays];
  ChunkTable<kArrays> table;
  int32_t first_grad;  // position of grad[0] among all gradients
};

struct GradPartial {
  double sum;   // of squares
  bool finite;  // all of them
};

// One partial for each chunk of the batch.
cudaError_t LaunchGradSums(const GradBatch& batch, const float* inv_scale, GradPartial* partials,
                           cudaStream_t stream);
// squares[0][i] and squares[1][i], of `gradients` in all, for those of the batch, from its partials.
cudaError_t LaunchGradSquares(const GradBatch& batch, const GradPartial* partials,
                              int64_t gradients, double* squares, cudaStream_t stream);
// The outputs of grad_stats from the squares of all gradients.
cudaError_t LaunchGradTotal(const double* squares, int64_t gradients, bool* finite, float* norm,
                            int32_t* first_bad, cudaStream_t stream);

}  // namespace halftone::cuda
