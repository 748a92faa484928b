// Rows dealt out to groups of neighbouring threads: a warp a row, or as many threads as a narrow
// row has units (16 bytes, or what alignment allows). Wide rows are cut over blocks in y too.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"

namespace halftone::cuda {

inline constexpr int kRowThreads = 256;
// On a multiprocessor at least: leaves a thread 80 registers, with which nothing is spilled.
inline constexpr int kRowBlocks = 3;
inline constexpr int kRowUnits = 256;  // of a row, for a group of 32 threads of one block

// What is launched, and threads a row (a power of two).
struct RowGroups {
  dim3 grid;
  int lanes;

  RowGroups(int64_t rows, int64_t units) {
    lanes = 1;
    while (lanes < 32 && lanes < units) lanes *= 2;
    const int64_t in_block = kRowThreads / lanes;
    const int64_t x = (rows + in_block - 1) / in_block, y = (units + kRowUnits - 1) / kRowUnits;
    grid = dim3(static_cast<unsigned>(x < INT32_MAX ? x : INT32_MAX),
                static_cast<unsigned>(y < 65535 ? y : 65535));
  }
};

// Calls body(row, unit) for this thread's part of rows [0, rows) with `units` each.
template <typename Body>
__device__ void ForRowUnits(int64_t rows, int64_t units, int lanes, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int in_block = kRowThreads / lanes;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * in_block + threadIdx.x / lanes; row < rows;
       row += static_cast<int64_t>(gridDim.x) * in_block) {
    for (int64_t first = static_cast<int64_t>(blockIdx.y) * kRowUnits; first < units;
         first += static_cast<int64_t>(gridDim.y) * kRowUnits) {
      const int64_t last = first + kRowUnits < units ? first + kRowUnits : units;
      for (int64_t unit = first + lane; unit < last; unit += lanes) body(row, unit);
    }
  }
}

// i64 if wide, else i32.
__device__ inline int64_t IndexAt(const void* indices, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
}

}  // namespace halftone::cuda
