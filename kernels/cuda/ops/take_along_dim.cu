// take_along_dim: a thread an element; neighbouring threads read neighbouring indices and write
// neighbours. The gradient is a scatter-add of single elements (scatter.h) by the numbers that
// FlatRows gives. Shared bytes: none. Bound: memory, scattered reads of x. Bytes moved: indices and
// y once, a sector of x an element at worst.
#include "halftone/kernels/cuda/device/row_groups.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/take_along_dim.h"

namespace halftone::cuda {
namespace {

constexpr int kTakeThreads = 256;

dim3 TakeGrid(int64_t size) {
  const int64_t blocks = (size + kTakeThreads - 1) / kTakeThreads, most = int64_t{1} << 24;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

// Calls body(pick, row) for this thread's picks; a bad index has the row -1.
template <typename Body>
__device__ void ForPicks(const TakeShape& s, int64_t size, const void* indices, const Body& body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kTakeThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kTakeThreads + threadIdx.x; i < size;
       i += step) {
    const int64_t index = IndexAt(indices, s.wide, i);
    const int64_t block = Divide(i, s.by_block).quotient, column = Divide(i, s.by_inner).rest;
    const bool good = index >= 0 && index < s.rows;
    body(i, good ? (block * s.rows + index) * s.inner + column : -1);
  }
}

template <typename T>
__global__ void __launch_bounds__(kTakeThreads)
    TakeKernel(TakeShape s, int64_t size, const T* x, const void* indices, T* y) {
  ForPicks(s, size, indices, [&](int64_t i, int64_t row) { y[i] = row < 0 ? T{0} : x[row]; });
}

__global__ void __launch_bounds__(kTakeThreads)
    FlatRowsKernel(TakeShape s, int64_t size, const void* indices, int64_t* flat) {
  ForPicks(s, size, indices, [&](int64_t i, int64_t row) { flat[i] = row; });
}

template <typename T>
cudaError_t TakeSized(const TakeShape& s, const void* x, const void* indices, void* y,
                      cudaStream_t stream) {
  return LaunchKernel(TakeKernel<T>, TakeGrid(s.size()), kTakeThreads, 0, stream, s, s.size(),
                      static_cast<const T*>(x), indices, static_cast<T*>(y));
}

}  // namespace

cudaError_t LaunchTake(const TakeShape& s, int element_size, const void* x, const void* indices,
                       void* y, cudaStream_t stream) {
  if (s.size() == 0) return cudaSuccess;
  switch (element_size) {
    case 1:
      return TakeSized<uint8_t>(s, x, indices, y, stream);
    case 2:
      return TakeSized<uint16_t>(s, x, indices, y, stream);
    case 4:
      return TakeSized<uint32_t>(s, x, indices, y, stream);
    default:
      return TakeSized<uint64_t>(s, x, indices, y, stream);
  }
}

cudaError_t LaunchFlatRows(const TakeShape& s, const void* indices, int64_t* flat,
                           cudaStream_t stream) {
  if (s.size() == 0) return cudaSuccess;
  return LaunchKernel(FlatRowsKernel, TakeGrid(s.size()), kTakeThreads, 0, stream, s, s.size(),
                      indices, flat);
}

}  // namespace halftone::cuda
