// What attention and its gradient share: operands as f32 tiles, and a tile of scores.
#if defined(HALFTONE_SIMD_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_ATTENTION_INL_H_
#undef HALFTONE_SIMD_ATTENTION_INL_H_
#else
#define HALFTONE_SIMD_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "halftone/kernels/cpu/simd/attention_fns.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/philox-inl.h"
#include "halftone/kernels/cpu/simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

HWY_INLINE int64_t WholeLanes(int64_t n) {
  constexpr int64_t kStep = kLanes;
  return (n + kStep - 1) / kStep * kStep;
}

// Rows as f32.
struct FloatRows {
  const float* data;
  int64_t stride;
};

// `rows` rows of n elements, `between` apart, as f32, with zeros up to whole vectors where `whole`:
// where they lie if they can be used there, else in `to`.
template <typename T>
FloatRows RowsOf(const T* x, int64_t between, int64_t rows, int64_t n, bool whole, float* to) {
  const int64_t stride = whole ? WholeLanes(n) : n;
  if constexpr (std::is_same_v<T, float>) {
    if (stride == n) return {x, between};
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = to + r * stride;
    MapVec(x + r * between, row, n, [](F32Vec v) { return v; });
    std::fill(row + n, row + stride, 0.0f);
  }
  return {to, stride};
}

// `rows` rows of n elements, `between` apart, times `scale`, as [n, width]; columns behind `rows` are 0.
template <typename T>
void PackTransposed(const T* x, int64_t between, int64_t rows, int64_t n, int64_t width,
                    float scale, float* to) {
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t c = 0; c < n; ++c) {
      to[c * width + i] = i < rows ? static_cast<float>(x[i * between + c]) * scale : 0.0f;
    }
  }
}

// x [rows, n], `stride` apart, times scale to y [rows, n], `between` apart.
template <typename T>
void StoreScaled(const float* x, int64_t stride, int64_t rows, int64_t n, float scale, void* y_data,
                 int64_t between) {
  T* y = static_cast<T*>(y_data);
  const F32Vec factor = hn::Set(F32Tag(), scale);
  for (int64_t r = 0; r < rows; ++r, x += stride, y += between) {
    MapVec(x, y, n, [factor](F32Vec v) { return hn::Mul(v, factor); });
  }
}

// sum(dy y) of each of `rows` rows, `between` apart; in f64 where a row is long.
template <typename T>
void Deltas(const T* dy, const T* y, int64_t between, int64_t rows, int64_t n, float* deltas) {
  for (int64_t r = 0; r < rows; ++r, dy += between, y += between) {
    const F32Tag d;
    double total = 0;
    F32Vec sum = hn::Zero(d);
    ForBlocks(
        n, [&](auto load, size_t) { sum = hn::MulAdd(load(dy), load(y), sum); },
        [&] {
          total += SumOf(sum);
          sum = hn::Zero(d);
        });
    deltas[r] = static_cast<float>(total);
  }
}

// Sets the scores that the mask forbids to -inf, or adds it. A column is a query: the mask's rows
// are walked as they lie.
template <typename M>
void ApplyMask(const AttentionRun& run, const M* mask, const ScoreTile& t, float* scores) {
  mask += t.query * run.mask_row + t.key * run.mask_column;
  const auto masked = [](float score, M m) {
    if constexpr (std::is_same_v<M, float>) return score + m;
    return m ? score : kMinusInf;
  };
  if (run.mask_row != 0) {
    for (int64_t i = 0; i < t.queries; ++i, mask += run.mask_row) {
      for (int64_t j = 0; j < t.keys; ++j) {
        float& score = scores[j * t.width + i];
        score = masked(score, mask[j * run.mask_column]);
      }
    }
    return;
  }
  // One row for all queries: padding.
  for (int64_t j = 0; j < t.keys; ++j) {
    float* const row = scores + j * t.width;
    const M m = mask[j * run.mask_column];
    if constexpr (std::is_same_v<M, float>) {
      const V added = hn::Set(F32Tag(), m);
      MapVec(row, row, t.width, [added](V score) { return hn::Add(score, added); });
    } else if (!m) {
      std::fill_n(row, t.width, kMinusInf);
    }
  }
}

// Where query i is before key j.
HWY_INLINE void ApplyCausal(const ScoreTile& t, float* scores) {
  const F32Tag d;
  constexpr int64_t kStep = kLanes;
  for (int64_t j = 0; j < t.keys; ++j) {
    const int64_t first = t.key + j - t.query;  // column that may see this key
    if (first <= 0) continue;
    const F32Vec bound = hn::Set(d, static_cast<float>(first));
    for (int64_t i = 0; i < t.width && i < first; i += kStep) {
      float* const at = scores + j * t.width + i;
      const auto sees = hn::Ge(hn::Iota(d, static_cast<float>(i)), bound);
      StoreVec(hn::IfThenElse(sees, LoadVec(at), hn::Set(d, kMinusInf)), at);
    }
  }
}

// Applies the masks to a tile of scores.
HWY_INLINE void MaskScores(const AttentionRun& run, const AttentionHead& head, const ScoreTile& t,
                           float* scores) {
  if (run.causal && t.key + t.keys - 1 > t.query) ApplyCausal(t, scores);
  if (head.mask == nullptr) return;
  if (run.bool_mask) {
    ApplyMask(run, static_cast<const bool*>(head.mask), t, scores);
  } else {
    ApplyMask(run, static_cast<const float*>(head.mask), t, scores);
  }
}

// scores = keys times the packed queries, which are scaled, behind the masks.
HWY_INLINE void Scores(const AttentionRun& run, const AttentionHead& head, const ScoreTile& t,
                       FloatRows keys, const float* packed_queries, float* scores) {
  Multiply({t.keys, t.width, run.columns, keys.data, keys.stride, 1, packed_queries, t.width,
            scores, t.width});
  MaskScores(run, head, t, scores);
}

// What dropout multiplies each weight by, laid as the scores: 0 or 1 / (1 - p).
HWY_INLINE void Keeps(const AttentionRun& run, const AttentionHead& head, const ScoreTile& t,
                      float* keeps) {
  constexpr int64_t kWords = 4 * kLanes;
  uint32_t words[kWords];
  for (int64_t i = 0; i < t.queries; ++i) {
    const uint64_t row =
        head.number * static_cast<uint64_t>(run.length) + static_cast<uint64_t>(t.query + i);
    const uint64_t first = row * static_cast<uint64_t>(run.keys) + static_cast<uint64_t>(t.key);
    int64_t skipped = static_cast<int64_t>(first % 4);
    uint64_t group = first / 4;
    for (int64_t j = 0; j < t.keys; group += kLanes, skipped = 0) {
      PhiloxWords(run.seed, run.run, group, words);
      const int64_t count = std::min(kWords - skipped, t.keys - j);
      for (int64_t w = 0; w < count; ++w, ++j) {
        const bool kept = static_cast<int32_t>(words[skipped + w] >> 8) >= run.threshold;
        keeps[j * t.width + i] = kept ? run.keep : 0.0f;
      }
    }
  }
  for (int64_t j = 0; j < t.keys; ++j) {
    std::fill(keeps + j * t.width + t.queries, keeps + (j + 1) * t.width, 0.0f);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_ATTENTION_INL_H_
