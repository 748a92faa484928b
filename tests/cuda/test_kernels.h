// Kernels for tests of the device: of streams, graphs, and of what threads of a block may do.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace halftone::testing {

// to[i] = value.
cudaError_t LaunchFill(int* to, int size, int value, cudaStream_t stream);
// to[i] = from[i] + 1.
cudaError_t LaunchAddOne(int* to, const int* from, int size, cudaStream_t stream);
// An empty kernel, for the limits of launches.
cudaError_t LaunchNothing(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);

// seen[linear number of the thread] += 1, blocks numbered x first.
cudaError_t LaunchVisit(int* seen, dim3 grid, dim3 block, cudaStream_t stream);

// Of `threads` threads, out[t] = the sum of t + 1 over the block, by a tree in dynamic shared
// memory with a barrier a level; threads is a power of two.
cudaError_t LaunchTreeSum(int* out, int threads, cudaStream_t stream);

// What the collectives of a warp give lane t of `threads`; arrays of that many.
struct WarpResults {
  int* broadcast;                           // of lane 3
  int* from_next;                           // down by 1 within 8 lanes
  int* from_previous;                       // up by 1 within 8 lanes
  int* butterfly;                           // xor 5
  unsigned* odd;                            // ballot of odd lanes
  int *any, *all;                           // of lane == 7
  int *block_or, *block_and, *block_count;  // of thread == 7
};
cudaError_t LaunchWarp(const WarpResults& results, int threads, cudaStream_t stream);

// One of each atomic, by all threads of a block, on values that start at `cells`.
struct AtomicCells {
  int *add, *max, *min, *bits_or, *compare_and_swap;
  unsigned long long* add_wide;
  float* add_float;
};
cudaError_t LaunchAtomics(const AtomicCells& cells, int threads, cudaStream_t stream);

}  // namespace halftone::testing
