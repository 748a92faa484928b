// Between the SIMD and the host halves of simd_attention.cc and simd_attention_grad.cc.
#pragma once

#include <cstdint>

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

// Of each row the largest score and log(sum(exp(score - largest))); Float may be const.
template <typename Float>
struct AttentionStats {
  Float *max, *log_sum;
};

// A tile of queries [query, query + queries) of one head: y [length, v_columns] and stats [length]
// of the head get its rows. `work`: AttentionPlan::size() of f32.
using AttentionFn = void (*)(const AttentionRun& run, const AttentionHead& head, int64_t query,
                             int64_t queries, void* y, AttentionStats<float> stats, float* work);

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

// What a tile of queries of one head adds to the gradients, over keys [key, key_end).
struct AttentionGradTile {
  int64_t query, queries;
  int64_t key, key_end;
  // Of the head, as attention gave or takes it.
  const void *y, *dy;
  AttentionStats<const float> stats;
  // [key_end - key, columns and v_columns in whole vectors]: added to, dk without the scale.
  float *dk, *dv;
  // Exactly one: dquery of the head, or its share of these keys, [length, columns] without the scale.
  void* dq;
  float* dq_part;
};
using AttentionGradFn = void (*)(const AttentionRun& run, const AttentionHead& head,
                                 const AttentionGradTile& tile, float* work);

// x [rows, n], `stride` apart, times scale to y [rows, n].
using StoreScaledFn = void (*)(const float* x, int64_t stride, int64_t rows, int64_t n, float scale,
                               void* y);

struct AttentionGradFns {
  AttentionGradFn tile;
  StoreScaledFn store;
  int64_t lanes;
};

}  // namespace halftone::kernels
