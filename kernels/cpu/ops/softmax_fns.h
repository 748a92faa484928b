// Between the SIMD and the host half of simd_softmax.cc.
#pragma once

#include <cstdint>

#include "halftone/kernels/cpu/simd/lines.h"

namespace halftone::kernels {

// Longest line whose elements are kept in f32 beside a strip: with a strip 32 lines wide that is
// 1 MiB, as much as a second-level cache holds.
inline constexpr int64_t kMaxKeptLine = 8192;
// Rows of a strip that are read together: as many as a lane adds in f32.
inline constexpr int64_t kKeptPiece = 32;

// Rows of f32 beside a strip: an element each, and the largest of each piece.
inline int64_t KeptRows(int64_t size) {
  return size > kMaxKeptLine ? 0 : size + (size + kKeptPiece - 1) / kKeptPiece;
}

struct SoftmaxFns {
  // A line of n contiguous elements.
  void (*row)(const void* x, void* y, int64_t n);
  // The lines [first, first + count), which fit a tile of `width`; `tile` has one for x, or
  // KeptRows() where strips lie in the tensor.
  void (*tile)(const void* x, void* y, const LineShape& shape, int64_t first, int64_t count,
               int64_t width, float* tile);
  void (*grad_row)(const void* y, const void* dy, void* dx, int64_t n);
  // `tile` has one for y and one for dy.
  void (*grad_tile)(const void* y, const void* dy, void* dx, const LineShape& shape, int64_t first,
                    int64_t count, int64_t width, float* tile);
};

}  // namespace halftone::kernels
