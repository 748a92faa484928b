#include "halftone/graph/ops/support/softmax_stats.h"

#include <numeric>

namespace halftone::ops {

using ir::Expr;

Expr JoinedStats(Expr max, Expr log_sum, const Shape& stats) {
  if (!max.valid() || !log_sum.valid()) return {};
  Ints one(stats.dims().begin(), stats.dims().end());
  one[0] = 1;
  return max.builder()->Op("concat", {ReshapeTo(max, Shape(one)), ReshapeTo(log_sum, Shape(one))},
                           {{"axis", int64_t{0}}});
}

Expr Statistic(Expr stats, int64_t which, const Shape& lines) {
  if (!stats.valid()) return {};
  const auto extents = stats.shape().dims();
  Ints starts(extents.size(), 0), limits(extents.begin(), extents.end());
  starts[0] = which;
  limits[0] = which + 1;
  const Expr part = stats.builder()->Op(
      "slice", {stats},
      {{"starts", starts}, {"limits", limits}, {"strides", Ints(extents.size(), 1)}});
  return ReshapeTo(part, lines);
}

Expr StatsGradient(Expr x, Expr weights, Expr dstats, int axis) {
  if (!x.valid() || !weights.valid()) return {};
  const Shape lines = ReducedShape(x.shape(), {axis}, true);
  const Expr dmax = Statistic(dstats, 0, lines), dlog_sum = Statistic(dstats, 1, lines);
  Ints extents(x.shape().rank(), 1);
  extents[axis] = x.shape()[axis];
  Tensor positions = Tensor::Empty(DType::kI64, Shape(extents));
  for (int64_t i = 0; i < positions.num_elements(); ++i) {
    positions.set(i, static_cast<double>(i));
  }
  ir::Builder& b = *x.builder();
  const Expr argmax =
      b.Op("argmax", {x}, {{"axis", static_cast<int64_t>(axis)}, {"keepdim", true}});
  const Expr is_largest = CastTo(Equal(argmax, b.Constant(positions)), x.dtype());
  return weights * dlog_sum + is_largest * (dmax - dlog_sum);
}

}  // namespace halftone::ops
