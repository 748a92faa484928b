// Between attention-inl.h, the SIMD halves of simd_attention*.cc and their host halves.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// Queries that are worked on together, a lane each, and keys that they meet at a time: their scores
// and the operands of their products stay in the first-level cache.
inline constexpr int64_t kQueryTile = 64, kKeyTile = 64;
// Products by tiles of bf16 are so fast that reading and writing what they add to counts: attention
// takes more keys at a time, its gradient more queries.
inline constexpr int64_t kTiledKeys = 128, kTiledQueries = 128;

// What holds for all rows of a run.
struct AttentionRun {
  int64_t length, keys;        // rows of a head of query; of key and value
  int64_t columns, v_columns;  // of query and key; of value
  // Elements between rows of a head; of y those of dy too.
  int64_t q_row, k_row, v_row, y_row;
  float scale;
  bool causal;
  // Elements of the mask between rows and between columns of the scores, 0 where it repeats.
  bool bool_mask;
  int64_t mask_row, mask_column;
  // Dropout keeps where the upper 24 bits of the word are at least the threshold; 0: no dropout.
  uint64_t seed, run;
  int32_t threshold;
  float keep;  // 1 / (1 - p)
};

// A head of query with what it meets: the first element of each.
struct AttentionHead {
  const void *q, *k, *v;
  const void* mask;  // null: none
  uint64_t number;   // among all heads of query
};

// The tile of scores of queries [query, query + queries) and keys [key, key + some), transposed:
// row j is key + j, column i is query + i; `width` columns, of which those behind `queries` are
// without meaning.
struct ScoreTile {
  int64_t query, queries, width;
  int64_t key, keys;
};

}  // namespace halftone::kernels
