// Operands of products of bf16 by tiles (../support/bf16_tiles.h), as those take them. For AVX-512 alone:
// whoever has such tiles has it, with AVX512-BF16.
#if defined(HALFTONE_SIMD_BF16_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_BF16_PACK_INL_H_
#undef HALFTONE_SIMD_BF16_PACK_INL_H_
#else
#define HALFTONE_SIMD_BF16_PACK_INL_H_
#endif

#include "halftone/kernels/cpu/simd/vectors-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Both rounded to nearest even, `low` in the lower half; subnormals become 0. In assembly, since the
// target is without AVX512-BF16.
HWY_INLINE __m512i RoundBoth(F32Vec low, F32Vec high) {
  __m512i both;
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high.raw), "v"(low.raw));
  return both;
}

// Lane i is element i of `even` below that of `odd`.
HWY_INLINE __m512i RoundToPairs(F32Vec even, F32Vec odd) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), RoundBoth(even, odd));
}

// Rows 2k and 2k + 1 of x [rows, n], `between` apart, as row k of pairs [whole / 2, n], zeros behind the
// rows. Requires: n is a multiple of 16, whole is even and at least `rows`.
HWY_INLINE void PairRows(const BF16* x, int64_t between, int64_t rows, int64_t n, int64_t whole,
                         uint32_t* pairs) {
  const auto words = [](const BF16* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  };
  for (int64_t r = 0; r < whole; r += 2, x += 2 * between, pairs += n) {
    for (int64_t c = 0; c < n; c += 16) {
      __m512i pair = _mm512_setzero_si512();
      if (r < rows) pair = words(x + c);
      if (r + 1 < rows) pair = _mm512_or_si512(pair, _mm512_slli_epi32(words(x + between + c), 16));
      _mm512_storeu_si512(pairs + c, pair);
    }
  }
}

// Likewise of f32. Requires: n is a multiple of 16.
HWY_INLINE void PairRows(const float* x, int64_t rows, int64_t n, int64_t whole, uint32_t* pairs) {
  for (int64_t r = 0; r < whole; r += 2, x += 2 * n, pairs += n) {
    for (int64_t c = 0; c < n; c += 16) {
      const F32Vec zero = hn::Zero(F32Tag());
      const F32Vec even = r < rows ? LoadVec(x + c) : zero;
      const F32Vec odd = r + 1 < rows ? LoadVec(x + n + c) : zero;
      _mm512_storeu_si512(pairs + c, RoundToPairs(even, odd));
    }
  }
}

// 16 rows of 16 words, turned in registers.
HWY_INLINE void TurnWords(__m512i* x) {
  __m512i y[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4) {
    const __m512i a = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    const __m512i b = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(x[i + 2], x[i + 3]);
    const __m512i d = _mm512_unpackhi_epi32(x[i + 2], x[i + 3]);
    // Of each quarter of a row, y[i + k] has column k of these four rows.
    y[i] = _mm512_unpacklo_epi64(a, c);
    y[i + 1] = _mm512_unpackhi_epi64(a, c);
    y[i + 2] = _mm512_unpacklo_epi64(b, d);
    y[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
#pragma GCC unroll 8
  for (int k = 0; k < 4; ++k) {
    const __m512i a = _mm512_shuffle_i32x4(y[k], y[k + 4], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(y[k], y[k + 4], 0xDD);
    const __m512i c = _mm512_shuffle_i32x4(y[k + 8], y[k + 12], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(y[k + 8], y[k + 12], 0xDD);
    x[k] = _mm512_shuffle_i32x4(a, c, 0x88);
    x[k + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
    x[k + 8] = _mm512_shuffle_i32x4(a, c, 0xDD);
    x[k + 12] = _mm512_shuffle_i32x4(b, d, 0xDD);
  }
}

// x [rows, n] of words, `between` words apart, as y [n, y_stride], zeros behind the rows up to `whole`
// columns. Requires: n and whole are multiples of 16.
HWY_INLINE void TransposeWords(const void* x_data, int64_t between, int64_t rows, int64_t n,
                               int64_t whole, void* y_data, int64_t y_stride) {
  const auto* x = static_cast<const char*>(x_data);
  auto* y = static_cast<char*>(y_data);
  for (int64_t r = 0; r < whole; r += 16) {
    for (int64_t c = 0; c < n; c += 16) {
      __m512i block[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        block[i] = r + i < rows ? _mm512_loadu_si512(x + ((r + i) * between + c) * 4)
                                : _mm512_setzero_si512();
      }
      TurnWords(block);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        _mm512_storeu_si512(y + ((c + i) * y_stride + r) * 4, block[i]);
      }
    }
  }
}

// x [rows, n], `between` apart, as a left operand [n, whole]: transposed, zeros behind the rows. `pairs`:
// whole / 2 * n words for work. Requires: n is a multiple of 16, whole of 32.
HWY_INLINE void TransposeRows(const BF16* x, int64_t between, int64_t rows, int64_t n,
                              int64_t whole, uint32_t* pairs, BF16* y) {
  PairRows(x, between, rows, n, whole, pairs);
  TransposeWords(pairs, n, whole / 2, n, whole / 2, y, whole / 2);
}

struct Bf16Rows {
  const BF16* data;
  int64_t stride;
};

// The first `rows` rows of n, `between` apart, as whole tiles take them: where they lie, or with zeros
// behind in `to`.
HWY_INLINE Bf16Rows WholeTiles(const BF16* x, int64_t between, int64_t rows, int64_t n, BF16* to) {
  constexpr int64_t kRows = 16;
  if (rows % kRows == 0) return {x, between};
  for (int64_t r = 0; r < rows; ++r) std::copy_n(x + r * between, n, to + r * n);
  std::fill_n(to + rows * n, (kRows - rows % kRows) * n, BF16());
  return {to, n};
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();
#endif

#endif  // HALFTONE_SIMD_BF16_PACK_INL_H_
