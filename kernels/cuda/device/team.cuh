// Teams: the threads that share one row. A team is a power of two of neighbouring lanes of a warp,
// or the whole block where it is larger than a warp. Rows go round the grid.
//
// Kernels say __launch_bounds__(kTeamBlock, 1): without the 1, ptxas spills a few registers of
// small kernels to fit more blocks on a multiprocessor.
#pragma once

#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/device/team_size.h"

namespace halftone::cuda {

inline dim3 TeamGrid(int64_t rows, int size) {
  const int64_t in_block = kTeamBlock / size;
  const int64_t blocks = (rows + in_block - 1) / in_block, most = int64_t{1} << 24;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

// One thread's place. All threads of a block run the same number of rounds, so that they meet in
// reductions; those without a row have row >= rows:
//   for (Team team(size); team.AnyRow(rows); team.Next()) ...
struct Team {
  __device__ explicit Team(int team_size)
      : size(team_size),
        rank(static_cast<int>(threadIdx.x) % team_size),
        in_block(kTeamBlock / team_size),
        first(static_cast<int64_t>(blockIdx.x) * in_block),
        row(first + static_cast<int>(threadIdx.x) / team_size) {}
  __device__ bool AnyRow(int64_t rows) const { return first < rows; }
  __device__ void Next() {
    first += static_cast<int64_t>(gridDim.x) * in_block;
    row += static_cast<int64_t>(gridDim.x) * in_block;
  }

  int size, rank, in_block;
  int64_t first, row;
};

// Every thread of the block must call it; each gets the result of its team.
template <typename T, typename Op>
__device__ T TeamReduce(T value, Op op, T identity, int size) {
  if (size > kWarp) return BlockReduce(value, op, identity);
  for (int bits = size / 2; bits > 0; bits /= 2) value = op(value, ShuffleXor(value, bits));
  return value;
}

}  // namespace halftone::cuda
