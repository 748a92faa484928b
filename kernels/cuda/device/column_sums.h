// How the rows of a matrix are cut for sums over its columns (column_sums.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::cuda {

struct PairOfSums {
  double a, b;
};

struct ColumnChunks {
  int64_t rows = 0, columns = 0;
  int64_t rows_of_chunk = 0;
  int64_t count = 0;  // of chunks; at least 1, so that no rows give 0

  ColumnChunks() = default;
  ColumnChunks(int64_t row_count, int64_t column_count) : rows(row_count), columns(column_count) {
    constexpr int64_t kMaxChunks = 65535;  // of a grid's y
    // A thread of eight adds 32 rows in f32 before f64 takes over (more beyond 16 million rows).
    rows_of_chunk = 256;
    while ((rows + rows_of_chunk - 1) / rows_of_chunk > kMaxChunks) rows_of_chunk *= 2;
    count = rows == 0 ? 1 : (rows + rows_of_chunk - 1) / rows_of_chunk;
  }
  size_t partial_bytes() const { return static_cast<size_t>(count * columns) * sizeof(PairOfSums); }
};

}  // namespace halftone::cuda
