// Between reduce-inl.h and the host half of a reduction (ops/reduce_kernel.h): inner loops that add
// elements to `acc` (double for sums, float for maxima).
#pragma once

#include <cstdint>

namespace halftone::kernels {

struct ReduceFns {
  // n contiguous elements into one result.
  void (*run)(const void* x, int64_t n, void* acc);
  // acc[j] takes x[i * stride + j] for all i < rows, j < width <= kReduceTile.
  void (*columns)(const void* x, int64_t stride, int64_t rows, int64_t width, void* acc);
};
inline constexpr int64_t kReduceTile = 512;

}  // namespace halftone::kernels
