// mse_loss and l1_loss. Reduced: a block of 256 adds 8,192 elements (32 a thread, in f32), then one
// block adds the blocks in f64. Shared: 256 bytes. Bound: memory; a and b are read once.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/ops/loss_sum.cuh"
#include "halftone/kernels/cuda/ops/losses.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kChunk = 8192;

int64_t ChunksOf(int64_t count) { return (count + kChunk - 1) / kChunk; }

template <typename V>
__device__ V LossOf(bool squared, V a, V b) {
  const V d = a - b;
  return squared ? d * d : fabs(d);
}

template <typename T>
__global__ void EachLossKernel(bool squared, int64_t count, const T* a, const T* b,
                               Compute<T>* result) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) result[i] = LossOf(squared, Widen(a[i]), Widen(b[i]));
}

template <typename T>
__global__ void ChunkLossKernel(bool squared, int64_t count, const T* a, const T* b,
                                double* partials) {
  const int64_t first = int64_t{blockIdx.x} * kChunk;
  const int64_t end = first + kChunk < count ? first + kChunk : count;
  Compute<T> sum = 0;
  for (int64_t i = first + threadIdx.x; i < end; i += kThreads) {
    sum += LossOf(squared, Widen(a[i]), Widen(b[i]));
  }
  const double total = BlockReduce(static_cast<double>(sum), Add(), 0.0);
  if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

template <typename T>
cudaError_t Launch(const RegressionLoss& loss, const void* a, const void* b, void* result,
                   double* partials, cudaStream_t stream) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  auto* const out = static_cast<Compute<T>*>(result);
  if (loss.reduction == LossReduction::kNone) {
    if (loss.count == 0) return cudaSuccess;
    return LaunchKernel(EachLossKernel<T>,
                        static_cast<unsigned>((loss.count + kThreads - 1) / kThreads), kThreads, 0,
                        stream, loss.squared, loss.count, x, y, out);
  }
  const int64_t chunks = ChunksOf(loss.count);
  if (chunks > 0) {
    const cudaError_t error =
        LaunchKernel(ChunkLossKernel<T>, static_cast<unsigned>(chunks), kThreads, 0, stream,
                     loss.squared, loss.count, x, y, partials);
    if (error != cudaSuccess) return error;
  }
  const double divisor =
      loss.reduction == LossReduction::kMean ? static_cast<double>(loss.count) : 1.0;
  return LaunchSumLoss(partials, chunks, nullptr, divisor, out, stream);
}

}  // namespace

int64_t RegressionPartials(int64_t count) { return LossSumRoom(ChunksOf(count)); }

cudaError_t LaunchRegressionLoss(const RegressionLoss& loss, const void* a, const void* b,
                                 void* result, double* partials, cudaStream_t stream) {
  return ForFloatType(loss.dtype, [&](auto zero) {
    return Launch<decltype(zero)>(loss, a, b, result, partials, stream);
  });
}

}  // namespace halftone::cuda
