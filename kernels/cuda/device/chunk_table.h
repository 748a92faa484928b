// ChunkTable: many arrays as the blocks of one launch. Each array is cut into chunks of one size,
// a block takes a chunk. The table travels in the kernel's parameters (4 KiB at most), so many
// arrays take several launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace halftone::cuda {

template <int kArrays>
struct ChunkTable {
  static constexpr int kCapacity = kArrays;
  int32_t count = 0;
  uint32_t first[kArrays + 1] = {0};  // the first chunk of each array; [count]: how many in all

  uint32_t chunks() const { return first[count]; }
  // Room for one more array of `size` elements; a grid has at most 2^31 - 1 blocks.
  bool HasRoom(int64_t size, int64_t chunk) const {
    return count < kArrays && chunks() + (size + chunk - 1) / chunk <= INT32_MAX;
  }
  void Add(int64_t size, int64_t chunk) {
    first[count + 1] = chunks() + static_cast<uint32_t>((size + chunk - 1) / chunk);
    ++count;
  }
};

#if defined(__CUDACC__) || defined(HALFTONE_CUDA_EMULATED)

// The array that a chunk belongs to: the last whose first chunk is not behind it. Arrays without a
// chunk are passed over.
template <int kArrays>
__device__ inline int ArrayOfChunk(const ChunkTable<kArrays>& table, uint32_t chunk) {
  int low = 0, high = table.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first[middle] <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

#endif

}  // namespace halftone::cuda
