// The end of a reduced loss: one block adds the parts in a fixed order.
#pragma once

#include "halftone/kernels/cuda/losses.h"
#include "halftone/kernels/cuda/reduce.cuh"

namespace halftone::cuda {

inline constexpr int kLossSumThreads = 256;

// result = sum of parts, divided by *counted if given, else by `divisor`.
template <typename V>
__global__ void SumLossKernel(const double* parts, int64_t count, const int64_t* counted,
                              double divisor, V* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kLossSumThreads) sum += parts[i];
  sum = BlockReduce(sum, Add(), 0.0);
  if (threadIdx.x != 0) return;
  *result = static_cast<V>(sum / (counted != nullptr ? static_cast<double>(*counted) : divisor));
}

template <typename V>
cudaError_t LaunchSumLoss(const double* parts, int64_t count, const int64_t* counted,
                          double divisor, V* result, cudaStream_t stream) {
  return LaunchKernel(SumLossKernel<V>, 1, kLossSumThreads, 0, stream, parts, count, counted,
                      divisor, result);
}

}  // namespace halftone::cuda
