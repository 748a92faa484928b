// Between the stats of scaled_dot_product_attention and what cuDNN calls so.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace halftone::cuda {

// log_sums[i] = log(sums[i]).
cudaError_t LaunchLogSums(const float* sums, int64_t rows, float* log_sums, cudaStream_t stream);

// log_sum_exp[i] = max[i] + log_sums[i], from stats: `rows` of max, then as many of log_sums.
cudaError_t LaunchLogSumExp(const float* stats, int64_t rows, float* log_sum_exp,
                            cudaStream_t stream);

}  // namespace halftone::cuda
