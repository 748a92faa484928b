// Between the SIMD and the host half of simd_cross_entropy.cc.
#pragma once

#include <cstdint>

#include "halftone/kernels/cpu/simd/lines.h"

namespace halftone::kernels {

// Of the logits x of a line. Not initialised, as the kernels have arrays for the lines of a tile.
struct LineSums {
  float max;
  double sum_exp;  // of exp(x - max)
  double sum;      // of x - max, for label smoothing
};

// What the gradient of a line's logits needs: scale (exp(x - max - log_sum) - smooth), without the
// target's own term.
struct LineSlope {
  float max, log_sum, scale;
};

struct CrossEntropyFns {
  LineSums (*row_sums)(const void* row, int64_t classes);
  void (*row_grad)(const void* row, void* grad, int64_t classes, const LineSlope& slope,
                   float smooth);
  // The lines [first, first + count) that fit a tile of `width`.
  void (*tile_sums)(const void* logits, const LineShape& shape, int64_t first, int64_t count,
                    int64_t width, float* tile, LineSums* sums);
  void (*tile_grad)(const void* logits, void* grad, const LineShape& shape, int64_t first,
                    int64_t count, int64_t width, float* tile, const LineSlope* slopes,
                    float smooth);
};

}  // namespace halftone::kernels
