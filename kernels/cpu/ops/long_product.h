// Between the SIMD and the host half of simd_long_product.cc; and which products those are.
#pragma once

#include <cstdint>

#include "halftone/graph/ir/graph.h"

namespace halftone::kernels {

// The part of y that is added up at a time.
inline constexpr int64_t kProductRows = 48, kProductColumns = 64;

// A slice of a [k, a_stride] and b [k, b_stride] from element (row, i) and (row, j) on.
struct ProductSlice {
  const void *a, *b;
  int64_t a_stride, b_stride, i, j;
  int64_t rows, columns;  // of y: at most kProductRows and kProductColumns
};

// sums[r * kProductColumns + c] += sum of a[k, i + r] b[k, j + c] for k in [begin, end).
using AddProductFn = void (*)(const ProductSlice& slice, int64_t begin, int64_t end, double* sums);

// Whether `node` is a matmul that sums over so many rows that f32 would lose digits on the way, and
// a library's split of them among threads would show: y [m, n] = transposed a [k, m] times b [k,
// n], as a linear layer's weight gradient is.
bool IsLongProduct(const ir::Node& node);

}  // namespace halftone::kernels
