// Products of small matrices of f32 in the caches, for kernels that are made of them.
#if defined(HALFTONE_SIMD_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_PRODUCT_INL_H_
#undef HALFTONE_SIMD_PRODUCT_INL_H_
#else
#define HALFTONE_SIMD_PRODUCT_INL_H_
#endif

#include <algorithm>

#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// c [rows, columns] of a [rows, depth] and b [depth, columns]. Element (i, k) of a lies at
// a[i * a_row + k * a_depth], so that a may be a transpose; rows of b and c are contiguous.
// Requires: columns is a multiple of kLanes.
struct TileProduct {
  int64_t rows, columns, depth;
  const float* a;
  int64_t a_row, a_depth;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
};

// Of c in registers: 24 vectors of AVX-512's 32, 12 of AVX2's 16.
constexpr int64_t kRegisterRows = 6, kRegisterVecs = kLanes == 8 ? 2 : 4;

// Loops are unrolled by hand: -O2 would keep them, and the sums in memory.
template <int64_t kRows, int64_t kVecs, bool kAdd>
HWY_INLINE void ProductBlock(const TileProduct& p, const float* a, const float* b, float* c) {
  const F32Tag d;
  F32Vec acc[kRows][kVecs];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVecs; ++v) {
      acc[r][v] = kAdd ? LoadVec(c + r * p.c_stride + v * kLanes) : hn::Zero(d);
    }
  }
  const int64_t a_row = p.a_row;
  for (int64_t k = 0; k < p.depth; ++k, a += p.a_depth, b += p.b_stride) {
    F32Vec right[kVecs];
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVecs; ++v) right[v] = LoadVec(b + v * kLanes);
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const F32Vec left = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
      for (int64_t v = 0; v < kVecs; ++v) acc[r][v] = hn::MulAdd(left, right[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVecs; ++v) StoreVec(acc[r][v], c + r * p.c_stride + v * kLanes);
  }
}

// The last `rows` < kRegisterRows rows.
template <int64_t kRows, int64_t kVecs, bool kAdd>
HWY_INLINE void ProductRest(const TileProduct& p, int64_t rows, const float* a, const float* b,
                            float* c) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return ProductBlock<kRows, kVecs, kAdd>(p, a, b, c);
    ProductRest<kRows - 1, kVecs, kAdd>(p, rows, a, b, c);
  }
}

template <int64_t kVecs, bool kAdd>
void ProductStrip(const TileProduct& p, const float* b, float* c) {
  const float* a = p.a;
  int64_t r = 0;
  for (; r + kRegisterRows <= p.rows; r += kRegisterRows) {
    ProductBlock<kRegisterRows, kVecs, kAdd>(p, a, b, c);
    a += kRegisterRows * p.a_row;
    c += kRegisterRows * p.c_stride;
  }
  ProductRest<kRegisterRows - 1, kVecs, kAdd>(p, p.rows - r, a, b, c);
}

template <int64_t kVecs, bool kAdd>
HWY_INLINE void ProductStrips(const TileProduct& p, int64_t column) {
  constexpr int64_t kColumns = kVecs * kLanes;
  for (; column + kColumns <= p.columns; column += kColumns) {
    ProductStrip<kVecs, kAdd>(p, p.b + column, p.c + column);
  }
  if constexpr (kVecs > 1) ProductStrips<kVecs - 1, kAdd>(p, column);
}

// c = a b, or c += a b.
HWY_INLINE void Multiply(const TileProduct& p) { ProductStrips<kRegisterVecs, false>(p, 0); }
HWY_INLINE void AddProduct(const TileProduct& p) { ProductStrips<kRegisterVecs, true>(p, 0); }

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_PRODUCT_INL_H_
