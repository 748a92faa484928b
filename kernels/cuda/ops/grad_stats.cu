// Algorithm: each gradient is cut into chunks of 8,192 elements; a block of 256 threads sums the
// squares of a chunk in f64 and notes whether all are finite. Then a block of 256 threads for each gradient adds
// the partials of its chunks, and one block of 1,024 threads those sums and looks for the first bad gradient, each in
// an order that its count alone decides: ranks that have some of the gradients each get the same bits.
// Accesses: 16 bytes a thread where the gradient is aligned, one element elsewhere and in the tail.
// Shared bytes: 384. Bound: memory. Bytes moved: each gradient once, the minimum, and 16 a chunk
// and a gradient written and read.
#include <cmath>

#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/grad_stats.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTotalThreads = 1024;

template <int N, typename T>
__device__ void AddSquares(const T* g, Compute<T> inv_scale, double* sum, bool* finite) {
  Compute<T> values[N];
  LoadPack(g, values);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Compute<T> u = values[i] * inv_scale;
    *finite = *finite && isfinite(u);
    *sum += static_cast<double>(u) * static_cast<double>(u);
  }
}

template <typename T>
__device__ void AddChunk(const void* grad, int64_t begin, int64_t size, float inv_scale,
                         double* sum, bool* finite) {
  const T* g = static_cast<const T*>(grad) + begin;
  constexpr int kPack = kPackOf<T>;
  const int64_t packs = reinterpret_cast<uintptr_t>(g) % 16 == 0 ? size / kPack : 0;
#pragma unroll 4
  for (int64_t k = threadIdx.x; k < packs; k += kThreads) {
    AddSquares<kPack>(g + k * kPack, inv_scale, sum, finite);
  }
  for (int64_t i = packs * kPack + threadIdx.x; i < size; i += kThreads) {
    AddSquares<1>(g + i, inv_scale, sum, finite);
  }
}

__global__ void __launch_bounds__(kThreads)
    GradSumsKernel(GradBatch batch, const float* inv_scale, GradPartial* partials) {
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * batch.kChunk;
  const int64_t rest = batch.size[i] - begin;
  const int64_t size = rest < batch.kChunk ? rest : batch.kChunk;
  double sum = 0;
  bool finite = true;
  switch (batch.dtype[i]) {
    case DType::kF64:
      AddChunk<double>(batch.grad[i], begin, size, *inv_scale, &sum, &finite);
      break;
    case DType::kF16:
      AddChunk<__half>(batch.grad[i], begin, size, *inv_scale, &sum, &finite);
      break;
    case DType::kBF16:
      AddChunk<__nv_bfloat16>(batch.grad[i], begin, size, *inv_scale, &sum, &finite);
      break;
    default:
      AddChunk<float>(batch.grad[i], begin, size, *inv_scale, &sum, &finite);
  }
  sum = BlockReduce(sum, Add(), 0.0);
  const bool all_finite = __syncthreads_and(finite) != 0;
  if (threadIdx.x != 0) return;
  partials[blockIdx.x] = {sum, all_finite};
}

// Of gradient blockIdx.x of the batch.
__global__ void __launch_bounds__(kThreads)
    GradSquaresKernel(GradBatch batch, const GradPartial* partials, int64_t gradients,
                      double* squares) {
  const uint32_t first = batch.table.first[blockIdx.x], end = batch.table.first[blockIdx.x + 1];
  double sum = 0;
  bool finite = true;
  for (uint32_t i = first + threadIdx.x; i < end; i += kThreads) {
    const GradPartial partial = partials[i];
    sum += partial.sum;
    finite = finite && partial.finite;
  }
  sum = BlockReduce(sum, Add(), 0.0);
  const bool all_finite = __syncthreads_and(finite) != 0;
  if (threadIdx.x != 0) return;
  const int64_t at = batch.first_grad + static_cast<int64_t>(blockIdx.x);
  squares[at] = sum;
  squares[gradients + at] = all_finite ? 0 : 1;
}

__global__ void __launch_bounds__(kTotalThreads)
    GradTotalKernel(const double* squares, int64_t gradients, bool* finite, float* norm,
                    int32_t* first_bad) {
  double sum = 0;
  int32_t bad = INT32_MAX;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < gradients; i += kTotalThreads) {
    sum += squares[i];
    if (squares[gradients + i] > 0) bad = Min()(bad, static_cast<int32_t>(i));
  }
  sum = BlockReduce(sum, Add(), 0.0);
  bad = BlockReduce(bad, Min(), INT32_MAX);
  if (threadIdx.x != 0) return;
  const bool good = bad == INT32_MAX;
  *finite = good;
  *norm = good ? static_cast<float>(sqrt(sum)) : HUGE_VALF;
  *first_bad = good ? -1 : bad;
}

}  // namespace

cudaError_t LaunchGradSums(const GradBatch& batch, const float* inv_scale, GradPartial* partials,
                           cudaStream_t stream) {
  static_assert(sizeof(batch) + sizeof(inv_scale) + sizeof(partials) <= 4096);
  if (batch.table.chunks() == 0) return cudaSuccess;
  return LaunchKernel(GradSumsKernel, batch.table.chunks(), kThreads, 0, stream, batch, inv_scale,
                      partials);
}

cudaError_t LaunchGradSquares(const GradBatch& batch, const GradPartial* partials,
                              int64_t gradients, double* squares, cudaStream_t stream) {
  static_assert(sizeof(batch) + sizeof(partials) + sizeof(gradients) + sizeof(squares) <= 4096);
  if (batch.table.count == 0) return cudaSuccess;
  return LaunchKernel(GradSquaresKernel, static_cast<uint32_t>(batch.table.count), kThreads, 0,
                      stream, batch, partials, gradients, squares);
}

cudaError_t LaunchGradTotal(const double* squares, int64_t gradients, bool* finite, float* norm,
                            int32_t* first_bad, cudaStream_t stream) {
  return LaunchKernel(GradTotalKernel, 1, kTotalThreads, 0, stream, squares, gradients, finite,
                      norm, first_bad);
}

}  // namespace halftone::cuda
