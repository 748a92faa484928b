// Algorithm: each gradient is cut into chunks of 8,192 elements; a block of 256 threads sums the
// squares of a chunk in f64 and notes whether all are finite. Then one block of 1,024 threads adds
// the partials of all chunks in a fixed order and takes the smallest position of a bad gradient.
// Accesses: 16 bytes a thread where the gradient is aligned, one element elsewhere and in the tail.
// Shared bytes: 384. Bound: memory. Bytes moved: each gradient once, the minimum, and 16 a chunk
// written and read.
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
  partials[blockIdx.x] = {sum, all_finite ? INT32_MAX : batch.first_grad + i};
}

__global__ void __launch_bounds__(kTotalThreads)
    GradTotalKernel(const GradPartial* partials, int64_t count, bool* finite, float* norm,
                    int32_t* first_bad) {
  double sum = 0;
  int32_t bad = INT32_MAX;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < count; i += kTotalThreads) {
    const GradPartial partial = partials[i];
    sum += partial.sum;
    bad = Min()(bad, partial.first_bad);
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

cudaError_t LaunchGradTotal(const GradPartial* partials, int64_t count, bool* finite, float* norm,
                            int32_t* first_bad, cudaStream_t stream) {
  return LaunchKernel(GradTotalKernel, 1, kTotalThreads, 0, stream, partials, count, finite, norm,
                      first_bad);
}

}  // namespace halftone::cuda
