// The two numbers that softmax-like ops keep of each line for their gradients: the largest entry
// m, then log_sum = log(sum(exp(x - m))). Joined they are [2, lines...].
#pragma once

#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {

// Both as one value of shape `stats`.
ir::Expr JoinedStats(ir::Expr max, ir::Expr log_sum, const Shape& stats);
// Number `which` of the two again, in shape `lines`.
ir::Expr Statistic(ir::Expr stats, int64_t which, const Shape& lines);
// The gradient in x of the statistics along `axis`, from `dstats`, that of the joined ones.
// `weights` is softmax(x). Where several entries are the largest, m is the first.
ir::Expr StatsGradient(ir::Expr x, ir::Expr weights, ir::Expr dstats, int axis);

}  // namespace halftone::ops
