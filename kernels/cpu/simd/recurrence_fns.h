// Between the SIMD and the host halves of the kernels of recurrent networks: weights in the order in
// which a step's products read them, and the tiles that a step is made of. T, the dtype of the op, is
// f32, f16 or bf16; what a product reads is f32.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// Rows of the batch that one tile has: its product stays in the first cache.
inline constexpr int64_t kTileRows = 48;

// A matrix [depth, groups * columns] in strips: a strip has `strip` neighbouring columns of each group,
// one group behind the other, and all of depth; columns beyond the last are 0. Element (k, column)
// of group g lies at g * group_stride + column * column_stride + k * depth_stride of the weights.
struct StripShape {
  int64_t depth, groups, columns, strip;
  int64_t group_stride, column_stride, depth_stride;

  int64_t strips() const { return (columns + strip - 1) / strip; }
  int64_t strip_floats() const { return depth * groups * strip; }
};
// Strip number `number` of w [T], to strip_floats() of f32.
using PackStripFn = void (*)(const StripShape& shape, const void* w, int64_t number, float* to);

// Of a step: rows [row, row + rows) of the batch, columns [column, column + columns) by one strip.
struct StepTile {
  int64_t row, rows, column, columns;
  const float* strip;
};

// y = a strip + what is given of `add` and `add_wide`, all [B, columns]; a [B, depth].
struct ProductStep {
  const StripShape* weights;
  const float* a;         // null: 0
  const void* add;        // [T], or null
  const float* add_wide;  // or null
  void* y;                // [T], or null
  float* y_wide;          // y as rounded to T, or null
};
using ProductStepFn = void (*)(const ProductStep& step, const StepTile& tile);

}  // namespace halftone::kernels
