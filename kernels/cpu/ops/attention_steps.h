// Between the SIMD and the host halves of simd_attention.cc and simd_attention_grad.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cpu/simd/attention_fns.h"
#include "halftone/kernels/cpu/support/workspace_plan.h"

namespace halftone::kernels {

struct AttentionPlan : WorkspacePlan {
  explicit AttentionPlan(const AttentionRun& r)
      : queries(Take(r.columns * kQueryTile)),
        result(Take(r.v_columns * kQueryTile)),
        scores(Take(kKeyTile * kQueryTile)),
        keeps(Take(r.threshold > 0 ? kKeyTile * kQueryTile : 0)),
        keys(Take(kKeyTile * r.columns)),
        values(Take(kKeyTile * r.v_columns)),
        max(Take(kQueryTile)),
        sum(Take(kQueryTile)),
        shrink(Take(kQueryTile)),
        row(Take(r.v_columns)) {}
  int64_t queries, result;  // transposed: a query a column
  int64_t scores, keeps, keys, values;
  int64_t max, sum, shrink;  // of each query
  int64_t row;
};

// Of attention in bf16 by tiles; arrays of bf16 take half of their floats.
struct TiledAttentionPlan : WorkspacePlan {
  explicit TiledAttentionPlan(const AttentionRun& r)
      : queries(Take(r.columns / 2 * kQueryTile)),
        result(Take(r.v_columns * kQueryTile)),
        scores(Take(kTiledKeys * kQueryTile)),
        keeps(Take(r.threshold > 0 ? kTiledKeys * kQueryTile : 0)),
        last_keys(Take(kTiledKeys * r.columns / 2)),
        pairs(Take(kTiledKeys / 2 * std::max(kQueryTile, r.v_columns))),
        max(Take(kQueryTile)),
        sum(Take(kQueryTile)),
        shrink(Take(kQueryTile)),
        rows(Take(r.v_columns * kQueryTile)) {}
  int64_t queries, result;  // transposed: a query a column
  int64_t scores, keeps, last_keys, pairs;
  int64_t max, sum, shrink;  // of each query
  int64_t rows;              // the result, a query a row
};

// Of each row the largest score and log(sum(exp(score - largest))); Float may be const.
template <typename Float>
struct AttentionStats {
  Float *max, *log_sum;
};

// A tile of queries [query, query + queries) of one head: y, its first row, and stats [length]
// of the head get its rows. `work`: AttentionPlan::size() of f32.
using AttentionFn = void (*)(const AttentionRun& run, const AttentionHead& head, int64_t query,
                             int64_t queries, void* y, AttentionStats<float> stats, float* work);

// The same in bf16 by tiles. `values`: those of the head, transposed, a tile of keys after the other.
using TiledAttentionFn = void (*)(const AttentionRun& run, const AttentionHead& head,
                                  const BF16* values, int64_t query, int64_t queries, void* y,
                                  AttentionStats<float> stats, float* work);
// Makes `values` of `keys` rows of them, with zeros up to a tile of keys. `work` as above.
using TurnValuesFn = void (*)(const AttentionRun& run, const void* v, int64_t keys, BF16* values,
                              float* work);

// Null where there are no tiles.
struct TiledAttentionFns {
  TiledAttentionFn tile;
  TurnValuesFn turn;
};

struct AttentionGradPlan : WorkspacePlan {
  // `whole` and `v_whole`: columns and v_columns in whole vectors.
  AttentionGradPlan(const AttentionRun& r, int64_t whole, int64_t v_whole)
      : packed_q(Take(r.columns * kQueryTile)),
        packed_dy(Take(r.v_columns * kQueryTile)),
        q(Take(kQueryTile * whole)),
        dy(Take(kQueryTile * v_whole)),
        dq(Take(kQueryTile * whole)),
        keys(Take(kKeyTile * whole)),
        values(Take(kKeyTile * r.v_columns)),
        weights(Take(kKeyTile * kQueryTile)),
        dscores(Take(kKeyTile * kQueryTile)),
        keeps(Take(r.threshold > 0 ? kKeyTile * kQueryTile : 0)),
        dropped(Take(r.threshold > 0 ? kKeyTile * kQueryTile : 0)),
        max(Take(kQueryTile)),
        log_sum(Take(kQueryTile)),
        delta(Take(kQueryTile)) {}
  int64_t packed_q, packed_dy;  // transposed: a query a column
  int64_t q, dy, dq, keys, values;
  int64_t weights, dscores, keeps, dropped;
  int64_t max, log_sum, delta;  // of each query
};

// In bf16 by tiles; arrays of bf16 take half of their floats.
struct TiledAttentionGradPlan : WorkspacePlan {
  TiledAttentionGradPlan(const AttentionRun& r, int64_t chunk_keys)
      : queries(Take(r.columns / 2 * kTiledQueries)),
        dy(Take(r.v_columns / 2 * kTiledQueries)),
        query_pairs(Take(kTiledQueries / 2 * r.columns)),
        dy_pairs(Take(kTiledQueries / 2 * r.v_columns)),
        dq(Take(r.columns * kTiledQueries)),
        dq_rows(Take(r.columns * kTiledQueries)),
        turned_keys(Take(chunk_keys * r.columns / 2)),
        last_keys(Take(kKeyTile * r.columns / 2)),
        last_values(Take(kKeyTile * r.v_columns / 2)),
        scores(Take(kKeyTile * kTiledQueries)),
        dweights(Take(kKeyTile * kTiledQueries)),
        weights(Take(kKeyTile * kTiledQueries / 2)),
        dscores(Take(kKeyTile * kTiledQueries / 2)),
        pairs(Take(kKeyTile / 2 * std::max(kTiledQueries, r.columns))),
        keeps(Take(r.threshold > 0 ? kKeyTile * kTiledQueries : 0)),
        max(Take(kTiledQueries)),
        log_sum(Take(kTiledQueries)),
        delta(Take(kTiledQueries)) {}
  int64_t queries, dy;  // transposed: a query a column
  int64_t query_pairs, dy_pairs;
  int64_t dq, dq_rows;  // transposed, and a query a row
  int64_t turned_keys;  // transposed, a tile of keys after the other
  int64_t last_keys, last_values;
  int64_t scores, dweights;  // f32
  int64_t weights, dscores;  // bf16
  int64_t pairs, keeps;
  int64_t max, log_sum, delta;  // of each query
};

// What a tile of queries of one head adds to the gradients, over keys [key, key_end).
struct AttentionGradTile {
  int64_t query, queries;
  int64_t key, key_end;
  // The first rows of the head.
  const void *y, *dy;
  AttentionStats<const float> stats;
  // [key_end - key, columns and v_columns in whole vectors]: added to, dk without the scale.
  float *dk, *dv;
  // Exactly one: dquery of the head, rows dq_row apart, or its share of these keys, [length, columns]
  // without the scale.
  void* dq;
  int64_t dq_row;
  float* dq_part;
};
using AttentionGradFn = void (*)(const AttentionRun& run, const AttentionHead& head,
                                 const AttentionGradTile& tile, float* work);

// x [rows, n], `stride` apart, times scale to y [rows, n], `between` apart.
using StoreScaledFn = void (*)(const float* x, int64_t stride, int64_t rows, int64_t n, float scale,
                               void* y, int64_t between);

struct AttentionGradFns {
  int64_t query_tile;
  // Size of `work`. Tiles of one head follow each other from query 0 on, with the same work.
  int64_t (*floats)(const AttentionRun& run, int64_t chunk_keys);
  AttentionGradFn tile;  // null where there is none
  StoreScaledFn store;
  int64_t lanes;
};

}  // namespace halftone::kernels
