// Kernels with one mistake each, `planted`, and without it otherwise.
#pragma once

#include <cuda_runtime_api.h>

namespace halftone::testing {

inline constexpr int kPlantedThreads = 64;  // of a block; arrays have that many elements

// to[t] = t. Planted: one element further.
cudaError_t LaunchOutOfBounds(int* to, bool planted);
// As above through shared memory.
cudaError_t LaunchOutOfStaticShared(int* to, bool planted);
cudaError_t LaunchOutOfDynamicShared(int* to, bool planted);

// to[t] is what thread (t + 33) % 64 wrote. Planted: without a barrier between.
cudaError_t LaunchNeighbour(int* to, bool planted);
// The same with thread t ^ 1 and the barrier of a warp.
cudaError_t LaunchWarpNeighbour(int* to, bool planted);
// Shared memory that is read, then written. Planted: without a barrier between.
cudaError_t LaunchShift(int* to, bool planted);
// Counts threads. Planted: not atomically.
cudaError_t LaunchCount(int* count, bool planted);
// Two blocks write their numbers. Planted: to the same element.
cudaError_t LaunchTwoBlocks(int* to, bool planted);
// Of kDistantBlocks blocks the first and `other`, if there is one of that number, write to[t].
inline constexpr int kDistantBlocks = 140;
cudaError_t LaunchDistantBlocks(int* to, int other);

// Planted: threads below 16 wait at another barrier.
cudaError_t LaunchTwoBarriers(int* to, bool planted);
// Planted: thread 0 leaves before the barrier.
cudaError_t LaunchEarlyExit(int* to, bool planted);

struct Destination {
  int size;
  int* to;
};
// to[t] = t, the pointer within a structure.
cudaError_t LaunchStructure(const Destination& destination);

// to[t] = from[t] + a shared value. Planted: one that nothing was written to.
cudaError_t LaunchUnwrittenShared(float* to, const float* from, bool planted);

}  // namespace halftone::testing
