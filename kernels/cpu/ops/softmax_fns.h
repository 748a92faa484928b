// Between the SIMD and the host half of simd_softmax.cc.
#pragma once

#include <cstdint>

#include "halftone/kernels/cpu/simd/lines.h"

namespace halftone::kernels {

struct SoftmaxFns {
  // A line of n contiguous elements.
  void (*row)(const void* x, void* y, int64_t n);
  // The lines [first, first + count), which fit a tile of `width`; `tile` has one for x.
  void (*tile)(const void* x, void* y, const LineShape& shape, int64_t first, int64_t count,
               int64_t width, float* tile);
  void (*grad_row)(const void* y, const void* dy, void* dx, int64_t n);
  // `tile` has one for y and one for dy.
  void (*grad_tile)(const void* y, const void* dy, void* dx, const LineShape& shape, int64_t first,
                    int64_t count, int64_t width, float* tile);
};

}  // namespace halftone::kernels
