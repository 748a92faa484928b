// Kernels with planted mistakes, of one block except for TwoBlocks and DistantBlocks.
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/tests/cuda/planted_bugs.h"

namespace halftone::testing {
namespace {

constexpr int kThreads = kPlantedThreads;

__global__ void OutOfBoundsKernel(int* to, bool planted) {
  const int t = static_cast<int>(threadIdx.x);
  to[t + (planted ? 1 : 0)] = t;
}

__global__ void OutOfStaticSharedKernel(int* to, bool planted) {
  HT_SHARED(int, part, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  part[t + (planted ? 1 : 0)] = t;
  __syncthreads();
  to[t] = part[t];
}

__global__ void OutOfDynamicSharedKernel(int* to, bool planted) {
  HT_DYNAMIC_SHARED(int, part);
  const int t = static_cast<int>(threadIdx.x);
  part[t + (planted ? 1 : 0)] = t;
  __syncthreads();
  to[t] = part[t];
}

__global__ void NeighbourKernel(int* to, bool planted) {
  HT_SHARED(int, part, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  part[t] = t;
  if (!planted) __syncthreads();
  to[t] = part[(t + 33) % kThreads];
}

__global__ void WarpNeighbourKernel(int* to, bool planted) {
  HT_SHARED(int, part, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  part[t] = t;
  if (!planted) __syncwarp();
  to[t] = part[t ^ 1];
}

__global__ void ShiftKernel(int* to, bool planted) {
  HT_SHARED(int, part, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  part[t] = t;
  __syncthreads();
  const int next = part[(t + 1) % kThreads];
  if (!planted) __syncthreads();
  part[t] = next;
  to[t] = part[t];
}

__global__ void CountKernel(int* count, bool planted) {
  if (planted) {
    *count += 1;
  } else {
    atomicAdd(count, 1);
  }
}

__global__ void TwoBlocksKernel(int* to, bool planted) {
  if (threadIdx.x == 0) to[planted ? 0 : blockIdx.x] = static_cast<int>(blockIdx.x);
}

// Behind a barrier: clocks of barriers are another way in which blocks could seem ordered.
__global__ void DistantBlocksKernel(int* to, int other) {
  HT_SHARED(int, part, [kThreads]);
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  part[t] = block;
  __syncthreads();
  if (block == 0 || block == other) to[t] = part[(t + 33) % kThreads];
  __syncthreads();
}

__global__ void TwoBarriersKernel(int* to, bool planted) {
  const int t = static_cast<int>(threadIdx.x);
  if (planted && t < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  to[t] = t;
}

__global__ void EarlyExitKernel(int* to, bool planted) {
  const int t = static_cast<int>(threadIdx.x);
  if (planted && t == 0) return;
  __syncthreads();
  to[t] = t;
}

__global__ void StructureKernel(Destination destination) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < destination.size) destination.to[t] = t;
}

__global__ void UnwrittenSharedKernel(float* to, const float* from, bool planted) {
  HT_SHARED(float, offset, [1]);
  if (!planted && threadIdx.x == 0) offset[0] = 1.0f;
  __syncthreads();
  to[threadIdx.x] = from[threadIdx.x] + offset[0];
}

}  // namespace

cudaError_t LaunchOutOfBounds(int* to, bool planted) {
  return cuda::LaunchKernel(OutOfBoundsKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchOutOfStaticShared(int* to, bool planted) {
  return cuda::LaunchKernel(OutOfStaticSharedKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchOutOfDynamicShared(int* to, bool planted) {
  return cuda::LaunchKernel(OutOfDynamicSharedKernel, 1, kThreads, kThreads * sizeof(int), nullptr,
                            to, planted);
}
cudaError_t LaunchNeighbour(int* to, bool planted) {
  return cuda::LaunchKernel(NeighbourKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchWarpNeighbour(int* to, bool planted) {
  return cuda::LaunchKernel(WarpNeighbourKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchShift(int* to, bool planted) {
  return cuda::LaunchKernel(ShiftKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchCount(int* count, bool planted) {
  return cuda::LaunchKernel(CountKernel, 1, kThreads, 0, nullptr, count, planted);
}
cudaError_t LaunchTwoBlocks(int* to, bool planted) {
  return cuda::LaunchKernel(TwoBlocksKernel, 2, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchDistantBlocks(int* to, int other) {
  return cuda::LaunchKernel(DistantBlocksKernel, kDistantBlocks, kThreads, 0, nullptr, to, other);
}
cudaError_t LaunchTwoBarriers(int* to, bool planted) {
  return cuda::LaunchKernel(TwoBarriersKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchEarlyExit(int* to, bool planted) {
  return cuda::LaunchKernel(EarlyExitKernel, 1, kThreads, 0, nullptr, to, planted);
}
cudaError_t LaunchStructure(const Destination& destination) {
  return cuda::LaunchKernel(StructureKernel, 1, kThreads, 0, nullptr, destination);
}
cudaError_t LaunchUnwrittenShared(float* to, const float* from, bool planted) {
  return cuda::LaunchKernel(UnwrittenSharedKernel, 1, kThreads, 0, nullptr, to, from, planted);
}

}  // namespace halftone::testing
