// Copies between lines of a tensor and a tile of f32 (lines.h).
#if defined(HALFTONE_SIMD_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_LINES_INL_H_
#undef HALFTONE_SIMD_LINES_INL_H_
#else
#define HALFTONE_SIMD_LINES_INL_H_
#endif

#include <algorithm>

#include "halftone/kernels/cpu/simd/lines.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Calls piece(element, column, n) for the lines [first, first + count) in pieces that lie beside
// each other: n of them from column on, whose first elements are at `element`.
template <typename Piece>
HWY_INLINE void ForPieces(const LineShape& s, int64_t first, int64_t count, const Piece& piece) {
  for (int64_t column = 0; column < count;) {
    const int64_t line = first + column;
    const int64_t n = std::min(count - column, s.inner - line % s.inner);
    piece(s.Start(line), column, n);
    column += n;
  }
}

// tile[k, column] = element k of line first + column, for k in [begin, end); rows of the tile are
// `width` apart, the first is that of `begin`.
template <typename T>
void ReadLines(const T* x, const LineShape& s, int64_t first, int64_t count, int64_t begin,
               int64_t end, int64_t width, float* tile) {
  ForPieces(s, first, count, [&](int64_t element, int64_t column, int64_t n) {
    for (int64_t k = begin; k < end; ++k) {
      MapVec(x + element + k * s.inner, tile + (k - begin) * width + column, n,
             [](F32Vec v) { return v; });
    }
  });
}

template <typename T>
void WriteLines(const float* tile, const LineShape& s, int64_t first, int64_t count, int64_t begin,
                int64_t end, int64_t width, T* y) {
  ForPieces(s, first, count, [&](int64_t element, int64_t column, int64_t n) {
    for (int64_t k = begin; k < end; ++k) {
      MapVec(tile + (k - begin) * width + column, y + element + k * s.inner, n,
             [](F32Vec v) { return v; });
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_LINES_INL_H_
