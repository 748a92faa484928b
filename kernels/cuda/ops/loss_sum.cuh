// The end of a reduced loss: blocks add the parts in a fixed order, of many in two rounds.
#pragma once

#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/losses.h"

namespace halftone::cuda {

inline constexpr int kLossSumThreads = 256;

// Sums of kLossSumPart parts each.
__global__ static void __launch_bounds__(kLossSumThreads)
    AddLossPartsKernel(const double* parts, int64_t count, double* sums) {
  const int64_t first = int64_t{blockIdx.x} * kLossSumPart;
  const int64_t end = first + kLossSumPart < count ? first + kLossSumPart : count;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = first + threadIdx.x; i < end; i += kLossSumThreads) sum += parts[i];
  sum = BlockReduce(sum, Add(), 0.0);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// result = sum of parts, divided by *counted if given, else by `divisor`.
template <typename V>
__global__ void __launch_bounds__(kLossSumThreads)
    SumLossKernel(const double* parts, int64_t count, const int64_t* counted, double divisor,
                  V* result) {
  double sum = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < count; i += kLossSumThreads) sum += parts[i];
  sum = BlockReduce(sum, Add(), 0.0);
  if (threadIdx.x != 0) return;
  *result = static_cast<V>(sum / (counted != nullptr ? static_cast<double>(*counted) : divisor));
}

// `parts` has LossSumRoom(count) values, of which the first `count` are given.
template <typename V>
cudaError_t LaunchSumLoss(double* parts, int64_t count, const int64_t* counted, double divisor,
                          V* result, cudaStream_t stream) {
  if (count > kLossSumPart) {
    double* const sums = parts + count;
    const int64_t blocks = (count + kLossSumPart - 1) / kLossSumPart;
    const cudaError_t error = LaunchKernel(AddLossPartsKernel, static_cast<unsigned>(blocks),
                                           kLossSumThreads, 0, stream, parts, count, sums);
    if (error != cudaSuccess) return error;
    parts = sums;
    count = blocks;
  }
  return LaunchKernel(SumLossKernel<V>, 1, kLossSumThreads, 0, stream, parts, count, counted,
                      divisor, result);
}

}  // namespace halftone::cuda
