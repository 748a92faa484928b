// Stats of attention as the op and as cuDNN have them: a number a row.
//
// Algorithm: a thread a row. Shared bytes: none. Bound: memory; 8 or 12 bytes a row, beside the
// hundreds of each row's query.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/log_sum_exp.cuh"
#include "halftone/kernels/cuda/ops/attention_stats.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;

dim3 BlocksOf(int64_t rows) {
  return dim3(static_cast<unsigned>((rows + kThreads - 1) / kThreads));
}

__global__ void __launch_bounds__(kThreads)
    LogSumsKernel(const float* sums, int64_t rows, float* log_sums) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (row < rows) log_sums[row] = Log(sums[row]);
}

__global__ void __launch_bounds__(kThreads)
    LogSumExpKernel(const float* stats, int64_t rows, float* log_sum_exp) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (row < rows) log_sum_exp[row] = stats[row] + stats[rows + row];
}

}  // namespace

cudaError_t LaunchLogSums(const float* sums, int64_t rows, float* log_sums, cudaStream_t stream) {
  return LaunchKernel(LogSumsKernel, BlocksOf(rows), kThreads, 0, stream, sums, rows, log_sums);
}

cudaError_t LaunchLogSumExp(const float* stats, int64_t rows, float* log_sum_exp,
                            cudaStream_t stream) {
  return LaunchKernel(LogSumExpKernel, BlocksOf(rows), kThreads, 0, stream, stats, rows,
                      log_sum_exp);
}

}  // namespace halftone::cuda
