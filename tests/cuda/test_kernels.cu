// Kernels of tests. Each is as plain as what it is for allows; one block unless said otherwise.
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/tests/cuda/test_kernels.h"

namespace halftone::testing {
namespace {

constexpr int kBlock = 64;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

__global__ void FillKernel(int* to, int size, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) to[i] = value;
}

__global__ void AddOneKernel(int* to, const int* from, int size) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) to[i] = from[i] + 1;
}

__global__ void NothingKernel(int) {}

__global__ void VisitKernel(int* seen) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  atomicAdd(seen + block * (blockDim.x * blockDim.y * blockDim.z) + thread, 1);
}

__global__ void TreeSumKernel(int* out) {
  HT_DYNAMIC_SHARED(int, sums);
  const int t = static_cast<int>(threadIdx.x);
  sums[t] = t + 1;
  __syncthreads();
  for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  out[t] = sums[0];
}

__global__ void WarpKernel(WarpResults r) {
  const int t = static_cast<int>(threadIdx.x), lane = t % warpSize;
  r.broadcast[t] = __shfl_sync(kAllLanes, t, 3);
  r.from_next[t] = __shfl_down_sync(kAllLanes, t, 1, 8);
  r.from_previous[t] = __shfl_up_sync(kAllLanes, t, 1, 8);
  r.butterfly[t] = __shfl_xor_sync(kAllLanes, t, 5);
  r.odd[t] = __ballot_sync(kAllLanes, lane % 2);
  r.any[t] = __any_sync(kAllLanes, lane == 7);
  r.all[t] = __all_sync(kAllLanes, lane == 7);
  r.block_or[t] = __syncthreads_or(t == 7);
  r.block_and[t] = __syncthreads_and(t == 7);
  r.block_count[t] = __syncthreads_count(t == 7);
}

__global__ void AtomicsKernel(AtomicCells cells) {
  const int t = static_cast<int>(threadIdx.x);
  atomicAdd(cells.add, t);
  atomicMax(cells.max, t);
  atomicMin(cells.min, -t);
  atomicOr(cells.bits_or, 1 << (t % 8));
  atomicCAS(cells.compare_and_swap, t, t + 1);
  atomicAdd(cells.add_wide, 1ull << 33);
  atomicAdd(cells.add_float, 0.5f);
}

}  // namespace

cudaError_t LaunchFill(int* to, int size, int value, cudaStream_t stream) {
  return cuda::LaunchKernel(FillKernel, (size + kBlock - 1) / kBlock, kBlock, 0, stream, to, size,
                            value);
}

cudaError_t LaunchAddOne(int* to, const int* from, int size, cudaStream_t stream) {
  return cuda::LaunchKernel(AddOneKernel, (size + kBlock - 1) / kBlock, kBlock, 0, stream, to, from,
                            size);
}

cudaError_t LaunchNothing(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  return cuda::LaunchKernel(NothingKernel, grid, block, shared_bytes, stream, 0);
}

cudaError_t LaunchVisit(int* seen, dim3 grid, dim3 block, cudaStream_t stream) {
  return cuda::LaunchKernel(VisitKernel, grid, block, 0, stream, seen);
}

cudaError_t LaunchTreeSum(int* out, int threads, cudaStream_t stream) {
  return cuda::LaunchKernel(TreeSumKernel, 1, threads, threads * sizeof(int), stream, out);
}

cudaError_t LaunchWarp(const WarpResults& results, int threads, cudaStream_t stream) {
  return cuda::LaunchKernel(WarpKernel, 1, threads, 0, stream, results);
}

cudaError_t LaunchAtomics(const AtomicCells& cells, int threads, cudaStream_t stream) {
  return cuda::LaunchKernel(AtomicsKernel, 1, threads, 0, stream, cells);
}

}  // namespace halftone::testing
