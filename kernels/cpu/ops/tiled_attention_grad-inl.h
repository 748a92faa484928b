// The gradient of attention in bf16 by tiles (support/bf16_tiles.h), for simd_attention_grad.cc: the same
// steps, with the weights and the gradient of the scores rounded to bf16 before their products.
#if defined(HALFTONE_TILED_ATTENTION_GRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_TILED_ATTENTION_GRAD_INL_H_
#undef HALFTONE_TILED_ATTENTION_GRAD_INL_H_
#else
#define HALFTONE_TILED_ATTENTION_GRAD_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "halftone/kernels/cpu/ops/attention_steps.h"
#include "halftone/kernels/cpu/simd/attention-inl.h"
#include "halftone/kernels/cpu/simd/bf16_pack-inl.h"
#include "halftone/kernels/cpu/support/bf16_tiles.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Weights and the gradient of scores of one tile, made of scores and the gradient of weights: in bf16
// [keys, kTiledQueries], and the latter in pairs of keys [depth / 2, width] too, with zeros behind keys.
struct TiledWeights {
  const float *scores, *dweights, *keeps;  // keeps: null: no dropout
  float scale;                             // of the scores
  const float *max, *log_sum, *delta;      // of each query
  BF16 *weights, *dscores;
  uint32_t* pairs;
};

HWY_INLINE void MakeWeights(const ScoreTile& t, int64_t depth, const TiledWeights& w) {
  struct Two {
    F32Vec weight, dscore;
  };
  const auto make = [&](int64_t j, int64_t i) -> Two {
    const F32Vec zero = hn::Zero(F32Tag()), factor = hn::Set(F32Tag(), w.scale);
    if (j >= t.keys) return {zero, zero};
    const int64_t at = j * t.width + i;
    const F32Vec above = hn::MulSub(LoadVec(w.scores + at), factor, LoadVec(w.max + i));
    const F32Vec weight = ExpOfScore(hn::Sub(above, LoadVec(w.log_sum + i)));
    const F32Vec dweight = LoadVec(w.dweights + at), delta = LoadVec(w.delta + i);
    if (w.keeps == nullptr) return {weight, hn::Mul(weight, hn::Sub(dweight, delta))};
    const F32Vec keep = LoadVec(w.keeps + at);
    return {hn::Mul(weight, keep), hn::Mul(weight, hn::MulSub(dweight, keep, delta))};
  };
  for (int64_t j = 0; j < depth; j += 2) {
    for (int64_t i = 0; i < t.width; i += 32) {
      const Two a = make(j, i), b = make(j, i + 16), c = make(j + 1, i), d = make(j + 1, i + 16);
      const int64_t row = j * kTiledQueries + i;
      _mm512_storeu_si512(w.weights + row, RoundBoth(a.weight, b.weight));
      _mm512_storeu_si512(w.weights + row + kTiledQueries, RoundBoth(c.weight, d.weight));
      _mm512_storeu_si512(w.dscores + row, RoundBoth(a.dscore, b.dscore));
      _mm512_storeu_si512(w.dscores + row + kTiledQueries, RoundBoth(c.dscore, d.dscore));
      uint32_t* const pair = w.pairs + j / 2 * t.width + i;
      _mm512_storeu_si512(pair, RoundToPairs(a.dscore, c.dscore));
      _mm512_storeu_si512(pair + 16, RoundToPairs(b.dscore, d.dscore));
    }
  }
}

inline void AttentionGradByTiles(const AttentionRun& run, const AttentionHead& head,
                                 const AttentionGradTile& tile, float* work) {
  const Bf16Tiles tiles;
  const int64_t columns = run.columns, v_columns = run.v_columns, queries = tile.queries;
  const int64_t chunk = std::max<int64_t>(0, tile.key_end - tile.key);
  const int64_t chunk_keys = (chunk + kKeyTile - 1) / kKeyTile * kKeyTile;
  const TiledAttentionGradPlan at(run, chunk_keys);
  const auto words = [work](int64_t offset) { return reinterpret_cast<uint32_t*>(work + offset); };
  const auto halves = [work](int64_t offset) { return reinterpret_cast<BF16*>(work + offset); };
  float *const max = work + at.max, *const log_sum = work + at.log_sum;
  float *const delta = work + at.delta, *const keeps = work + at.keeps;
  float *const scores = work + at.scores, *const dweights = work + at.dweights;
  // Whole depths of the products over queries.
  ScoreTile t{tile.query, queries, (queries + 31) / 32 * 32, 0, 0};

  const BF16* const q = static_cast<const BF16*>(head.q) + tile.query * run.q_row;
  const BF16* const dy = static_cast<const BF16*>(tile.dy) + tile.query * run.y_row;
  const BF16* const y = static_cast<const BF16*>(tile.y) + tile.query * run.y_row;
  const BF16* const k = static_cast<const BF16*>(head.k);
  const BF16* const v = static_cast<const BF16*>(head.v);
  if (tile.query == 0) {
    for (int64_t key = tile.key; key < tile.key_end; key += kKeyTile) {
      TransposeRows(k + key * run.k_row, run.k_row, std::min(kKeyTile, tile.key_end - key), columns,
                    kKeyTile, words(at.pairs), halves(at.turned_keys) + (key - tile.key) * columns);
    }
  }
  TransposeWords(q, run.q_row / 2, queries, columns / 2, t.width, words(at.queries), t.width);
  TransposeWords(dy, run.y_row / 2, queries, v_columns / 2, t.width, words(at.dy), t.width);
  PairRows(q, run.q_row, queries, columns, t.width, words(at.query_pairs));
  PairRows(dy, run.y_row, queries, v_columns, t.width, words(at.dy_pairs));
  // Without a key to see, and behind the queries, weights are exp(score - inf) = 0.
  std::fill_n(max, t.width, std::numeric_limits<float>::infinity());
  std::fill_n(log_sum, t.width, 0.0f);
  std::fill_n(delta, t.width, 0.0f);
  for (int64_t i = 0; i < queries; ++i) {
    const float value = tile.stats.max[tile.query + i];
    if (value == kMinusInf) continue;
    max[i] = value;
    log_sum[i] = tile.stats.log_sum[tile.query + i];
  }
  Deltas(dy, y, run.y_row, queries, v_columns, delta);

  float* const dq = work + at.dq;
  std::fill_n(dq, columns * t.width, 0.0f);
  const F32Vec scale = hn::Set(F32Tag(), run.scale);
  const bool masked = run.causal || head.mask != nullptr;
  const int64_t key_end = run.causal ? std::min(tile.key_end, tile.query + queries) : tile.key_end;
  for (t.key = tile.key; t.key < key_end; t.key += kKeyTile) {
    t.keys = std::min(kKeyTile, key_end - t.key);
    const int64_t rows = (t.keys + 15) / 16 * 16, depth = (t.keys + 31) / 32 * 32;
    const Bf16Rows keys =
        WholeTiles(k + t.key * run.k_row, run.k_row, t.keys, columns, halves(at.last_keys));
    const Bf16Rows values =
        WholeTiles(v + t.key * run.v_row, run.v_row, t.keys, v_columns, halves(at.last_values));
    MultiplyBf16({rows, t.width, columns, keys.data, keys.stride, words(at.queries), t.width,
                  scores, t.width});
    MultiplyBf16({rows, t.width, v_columns, values.data, values.stride, words(at.dy), t.width,
                  dweights, t.width});
    // Masks are for scaled scores; without one the scale can wait for the pass that makes the weights.
    if (masked) {
      MapVec(scores, scores, t.keys * t.width, [scale](F32Vec x) { return hn::Mul(x, scale); });
      MaskScores(run, head, t, scores);
    }
    if (run.threshold > 0) Keeps(run, head, t, keeps);
    MakeWeights(t, depth,
                {scores, dweights, run.threshold > 0 ? keeps : nullptr, masked ? 1.0f : run.scale,
                 max, log_sum, delta, halves(at.weights), halves(at.dscores), words(at.pairs)});
    const int64_t first = t.key - tile.key;
    AddBf16Product({rows, v_columns, t.width, halves(at.weights), kTiledQueries, words(at.dy_pairs),
                    v_columns, tile.dv + first * v_columns, v_columns});
    AddBf16Product({rows, columns, t.width, halves(at.dscores), kTiledQueries,
                    words(at.query_pairs), columns, tile.dk + first * columns, columns});
    AddBf16Product({columns, t.width, depth, halves(at.turned_keys) + first * columns, kKeyTile,
                    words(at.pairs), t.width, dq, t.width});
  }
  float* const dq_rows = work + at.dq_rows;
  TransposeWords(dq, t.width, columns, t.width, columns, dq_rows, columns);
  if (tile.dq != nullptr) {
    StoreScaled<BF16>(dq_rows, columns, queries, columns, run.scale,
                      static_cast<BF16*>(tile.dq) + tile.query * tile.dq_row, tile.dq_row);
  } else {
    StoreScaled<float>(dq_rows, columns, queries, columns, 1.0f,
                       tile.dq_part + tile.query * columns, columns);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();
#endif

#endif  // HALFTONE_TILED_ATTENTION_GRAD_INL_H_
