// Two sums at once over the rows of a matrix, for each of its columns: the gradients of affine
// parameters.
//
// Algorithm: a block takes 32 neighbouring columns and one chunk of rows; a thread adds every
// eighth row in the arithmetic of the type, the eight are added in f64. A second kernel adds the
// chunks in their order. Chunks depend on the shape alone, so the sums do not depend on the order
// of threads. Mapping: blocks of 32 x 8, grid (column tiles, chunks). Shared: 4 KiB. Bound: memory;
// the rows are read once, chunks write 16 bytes a column.
#pragma once

#include "halftone/kernels/cuda/device/column_sums.h"
#include "halftone/kernels/cuda/device/device.cuh"

namespace halftone::cuda {

inline constexpr int kColumnsOfBlock = 32;
inline constexpr int kRowsOfBlock = 8;

// `term(row, column, &a, &b)` gives the two terms of an element in V.
template <typename V, typename Term>
__global__ void SumColumnsKernel(Term term, ColumnChunks chunks, PairOfSums* partials) {
  HT_SHARED(PairOfSums, part, [kRowsOfBlock][kColumnsOfBlock]);
  const int64_t column = int64_t{blockIdx.x} * kColumnsOfBlock + threadIdx.x;
  const int64_t first = int64_t{blockIdx.y} * chunks.rows_of_chunk;
  const int64_t end =
      first + chunks.rows_of_chunk < chunks.rows ? first + chunks.rows_of_chunk : chunks.rows;
  V sum_a = 0, sum_b = 0;
  if (column < chunks.columns) {
    for (int64_t row = first + threadIdx.y; row < end; row += kRowsOfBlock) {
      V a, b;
      term(row, column, &a, &b);
      sum_a += a;
      sum_b += b;
    }
  }
  part[threadIdx.y][threadIdx.x] = {static_cast<double>(sum_a), static_cast<double>(sum_b)};
  __syncthreads();
  if (threadIdx.y != 0 || column >= chunks.columns) return;
  PairOfSums total{0, 0};
  for (int row = 0; row < kRowsOfBlock; ++row) {
    total.a += part[row][threadIdx.x].a;
    total.b += part[row][threadIdx.x].b;
  }
  partials[int64_t{blockIdx.y} * chunks.columns + column] = total;
}

// The sums of one column over all chunks, in order.
__device__ inline PairOfSums AddChunks(const ColumnChunks& chunks, const PairOfSums* partials,
                                       int64_t column) {
  PairOfSums total{0, 0};
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const PairOfSums part = partials[chunk * chunks.columns + column];
    total.a += part.a;
    total.b += part.b;
  }
  return total;
}

template <typename V, typename Term>
cudaError_t LaunchSumColumns(const Term& term, const ColumnChunks& chunks, PairOfSums* partials,
                             cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((chunks.columns + kColumnsOfBlock - 1) / kColumnsOfBlock),
                  static_cast<unsigned>(chunks.count));
  return LaunchKernel(SumColumnsKernel<V, Term>, grid, dim3(kColumnsOfBlock, kRowsOfBlock), 0,
                      stream, term, chunks, partials);
}

}  // namespace halftone::cuda
