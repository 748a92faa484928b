// What the kernels of recurrent networks share: strips of weights, the product of a tile, and y = a w
// of a step.
#if defined(HALFTONE_SIMD_RECURRENCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_RECURRENCE_INL_H_
#undef HALFTONE_SIMD_RECURRENCE_INL_H_
#else
#define HALFTONE_SIMD_RECURRENCE_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/product-inl.h"
#include "halftone/kernels/cpu/simd/recurrence_fns.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Columns of a strip of one group: all that the product holds in registers.
constexpr int64_t kWideStrip = kRegisterVecs * kLanes;
// Of depth that a product takes at once: of a strip, what stays in the first cache for all rows.
constexpr int64_t kDepthBlock = 96;

template <typename T>
void PackStrip(const StripShape& s, const void* w_data, int64_t number, float* to) {
  const int64_t column = number * s.strip, width = s.groups * s.strip;
  const int64_t valid = std::min(s.strip, s.columns - column);
  for (int64_t g = 0; g < s.groups; ++g) {
    const T* w = static_cast<const T*>(w_data) + g * s.group_stride + column * s.column_stride;
    float* row = to + g * s.strip;
    for (int64_t k = 0; k < s.depth; ++k, w += s.depth_stride, row += width) {
      for (int64_t j = 0; j < valid; ++j) row[j] = static_cast<float>(w[j * s.column_stride]);
      std::fill(row + valid, row + s.strip, 0.0f);
    }
  }
}

// rows of a [B, depth] times the strip, to product [rows, groups * strip].
HWY_INLINE void MultiplyStrip(const StripShape& s, const float* a, const StepTile& tile,
                              float* product) {
  const int64_t width = s.groups * s.strip;
  if (a == nullptr) {
    std::fill_n(product, tile.rows * width, 0.0f);
    return;
  }
  TileProduct p{tile.rows,
                width,
                std::min(kDepthBlock, s.depth),
                a + tile.row * s.depth,
                s.depth,
                1,
                tile.strip,
                width,
                product,
                width};
  Multiply(p);
  for (int64_t k = p.depth; k < s.depth; k += p.depth) {
    p.a += p.depth;
    p.b += p.depth * width;
    p.depth = std::min(kDepthBlock, s.depth - k);
    AddProduct(p);
  }
}

// x as T has it.
template <typename T>
HWY_INLINE F32Vec RoundedTo(F32Vec x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    T rounded[kLanes];
    StoreVec(x, rounded);
    return LoadVec(rounded);
  }
}

template <typename T>
void ProductTile(const ProductStep& s, const StepTile& tile) {
  const int64_t columns = s.weights->columns;
  HWY_ALIGN float product[kTileRows * kWideStrip];
  MultiplyStrip(*s.weights, s.a, tile, product);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.row + r) * columns + tile.column;
    const float* const row = product + r * kWideStrip;
    ForRow(tile.columns, [&](auto load, auto store) {
      F32Vec y = load(row);
      if (s.add != nullptr) y = hn::Add(y, load(static_cast<const T*>(s.add) + at));
      if (s.add_wide != nullptr) y = hn::Add(y, load(s.add_wide + at));
      if (s.y != nullptr) store(y, static_cast<T*>(s.y) + at);
      if (s.y_wide != nullptr) store(RoundedTo<T>(y), s.y_wide + at);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_RECURRENCE_INL_H_
