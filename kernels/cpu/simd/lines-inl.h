// Loops over lines (lines.h) with a line a lane, where they lie or in a tile of f32.
#if defined(HALFTONE_SIMD_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_LINES_INL_H_
#undef HALFTONE_SIMD_LINES_INL_H_
#else
#define HALFTONE_SIMD_LINES_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <limits>
#include <type_traits>

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

// The same pieces as strips of the tensor itself.
template <typename Call>
HWY_INLINE void ForStrips(const LineShape& s, int64_t first, int64_t count, const Call& call) {
  ForPieces(s, first, count, [&](int64_t element, int64_t column, int64_t n) {
    call(element, column, Strip{s.size, s.inner, n});
  });
}

// tile[k, column] = element k of line first + column; rows of the tile are `width` apart.
template <typename T>
void ReadLines(const T* x, const LineShape& s, int64_t first, int64_t count, int64_t width,
               float* tile) {
  ForPieces(s, first, count, [&](int64_t element, int64_t column, int64_t n) {
    for (int64_t k = 0; k < s.size; ++k) {
      MapVec(x + element + k * s.inner, tile + k * width + column, n, [](F32Vec v) { return v; });
    }
  });
}

template <typename T>
void WriteLines(const float* tile, const LineShape& s, int64_t first, int64_t count, int64_t width,
                T* y) {
  ForPieces(s, first, count, [&](int64_t element, int64_t column, int64_t n) {
    for (int64_t k = 0; k < s.size; ++k) {
      MapVec(tile + k * width + column, y + element + k * s.inner, n, [](F32Vec v) { return v; });
    }
  });
}

HWY_INLINE void StreamVec(F32Vec v, float* p) { hn::Stream(v, F32Tag(), p); }
template <typename T>
HWY_INLINE void StreamVec(F32Vec v, T* p) {
  alignas(64) T low[kLanes];
  StoreVec(v, low);
  hn::Stream(hn::Load(U16Tag(), reinterpret_cast<const uint16_t*>(low)), U16Tag(),
             reinterpret_cast<uint16_t*>(p));
}

// y[i] = value(load) over whole vectors, past the caches. Requires: n is a multiple of kLanes, y is
// aligned to so many elements. hwy::FlushStream() comes after the last row.
template <typename Value, typename T>
HWY_INLINE void StreamRow(int64_t n, const Value& value, T* y) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StreamVec(value([i](const auto* p) { return LoadVec(p + i); }), y + i);
  }
}

// Calls step(at, load, store) over the vectors of the strip's rows: row k starts at element `at` of
// an array like the strip. Calls flush() behind every kLaneTerms rows and the last.
template <typename Step, typename Flush>
HWY_INLINE void ForStrip(const Strip& s, const Step& step, const Flush& flush) {
  for (int64_t k = 0; k < s.size; ++k) {
    ForRow(s.count, [&](auto load, auto store) { step(k * s.stride, load, store); });
    if (k % kLaneTerms == kLaneTerms - 1 || k == s.size - 1) flush();
  }
}
template <typename Step>
HWY_INLINE void ForStrip(const Strip& s, const Step& step) {
  ForStrip(s, step, [] {});
}

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// max[i] = the largest element of line i.
template <typename T>
HWY_INLINE void MaxOfLines(const T* x, const Strip& s, float* max) {
  std::fill_n(max, s.count, kLowest);
  ForStrip(
      s, [&](int64_t at, auto load, auto store) { store(hn::Max(load(max), load(x + at)), max); });
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_LINES_INL_H_
