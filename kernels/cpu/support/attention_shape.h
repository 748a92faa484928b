// The sizes of an attention as its kernels work on it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/core/threads.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/attention.h"
#include "halftone/kernels/cpu/simd/attention_fns.h"

namespace halftone::kernels {

class AttentionShape {
 public:
  // `mask_port`: where the node has its mask, if any.
  AttentionShape(const ir::Node& node, int mask_port);

  // The run as it is described to the vector half; without its count.
  const AttentionRun& run() const { return run_; }
  // Of query's heads; dquery as query, in the order in which results are.
  const ops::HeadRows& y() const { return y_; }
  const ops::HeadRows& dq() const { return dq_; }
  // Of the heads of key and value.
  const ops::HeadRows& v() const { return v_; }
  const ops::HeadRows& dk() const { return dk_; }
  const ops::HeadRows& dv() const { return dv_; }
  int64_t heads() const { return heads_; }
  // Heads of key and value, each of which group() heads of query meet.
  int64_t key_heads() const { return heads_ / std::max<int64_t>(1, group_); }
  int64_t group() const { return group_; }
  bool has_mask() const { return !mask_starts_.empty(); }
  // Tiles of queries of a head.
  int64_t tiles() const { return (run_.length + kQueryTile - 1) / kQueryTile; }
  int64_t query_elements() const { return heads_ * run_.length * run_.columns; }

  // The operands of head `number` of query, of which the mask is at `mask` (null: none).
  AttentionHead Head(int64_t number, const void* q, const void* k, const void* v,
                     const void* mask) const;

  // Deals `tasks` out to the threads that were there when the kernel was made, call(task, slot), one
  // after the other: tasks of a causal attention grow along a head. `slots` is at most `tasks`.
  template <typename Call>
  void Deal(int64_t tasks, int64_t slots, const Call& call) const {
    ParallelFor(0, slots, small_ ? std::max<int64_t>(1, slots) : 1,
                [&](int64_t first, int64_t last) {
                  for (int64_t slot = first; slot < last; ++slot) {
                    for (int64_t task = slot; task < tasks; task += slots) call(task, slot);
                  }
                });
  }
  int64_t Slots(int64_t tasks) const { return std::min<int64_t>(tasks, NumThreads()); }

 private:
  AttentionShape(const ir::Node& node, int mask_port, const ops::AttentionViews& views);

  ops::HeadRows q_, k_, v_, y_, dq_, dk_, dv_;
  AttentionRun run_;
  int64_t size_;  // bytes of an element
  int64_t heads_ = 1, group_ = 1;
  bool small_;
  // Where the mask of each head begins, in bytes; empty: no mask.
  std::vector<int64_t> mask_starts_;
};

// Unimplemented unless columns and v_columns are whole tiles of bf16 (bf16_tiles.h).
absl::Status WholeTilesOfColumns(const ir::Node& node);

}  // namespace halftone::kernels
