// ReducePlan: a reduction over any axes of a dense tensor, brought to one of two inner loops.
//
// In memory order, extents of 1 dropped and neighbours of a kind merged, the axes of x alternate
// between kept and reduced. Where the last one is reduced, the inner block is `width` = 1 column of
// `rows` contiguous elements; where it is kept, the block is [rows, width], dense, summed over
// rows. Around the block are `kept` groups of results, and for each `reduced` blocks that go into
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::kernels {

class ReducePlan {
 public:
  // `is_reduced` says it per axis of x.
  ReducePlan(const ir::ValueType& x, const std::vector<bool>& is_reduced);

  // Whether the results lie in y as the plan makes them, group by group. Requires: y has the kept
  // axes of x in order, maybe with axes of extent 1 between.
  static bool WritesInOrder(const ir::ValueType& x, const std::vector<bool>& is_reduced,
                            const ir::ValueType& y);

  int64_t kept = 1, reduced = 1, rows = 1, width = 1;

  // Element of x at which block `r` of group `k` starts.
  int64_t Start(int64_t k, int64_t r) const {
    return Offset(kept_axes_, k) + Offset(reduced_axes_, r);
  }

  // What `kept` and `reduced` count over, innermost first; strides in elements of x. At most
  // kMaxAxes of each: the kinds alternate.
  struct Axis {
    int64_t extent, stride;
  };
  static constexpr int kMaxAxes = kMaxRank / 2;
  const std::vector<Axis>& kept_axes() const { return kept_axes_; }
  const std::vector<Axis>& reduced_axes() const { return reduced_axes_; }

 private:
  static int64_t Offset(const std::vector<Axis>& axes, int64_t index) {
    int64_t offset = 0;
    for (const Axis& axis : axes) {  // innermost first
      offset += index % axis.extent * axis.stride;
      index /= axis.extent;
    }
    return offset;
  }
  std::vector<Axis> kept_axes_, reduced_axes_;
};

// Per axis of input 0 of sum, mean, max, sum_to_shape or conv2d_grad_bias, whether the node reduces
// it.
std::vector<bool> ReducedAxesOf(const ir::Node& node);
// Unimplemented if the layout of the result orders the kept axes otherwise than x does.
absl::Status ReducesInOrder(const ir::Node& node);

}  // namespace halftone::kernels
