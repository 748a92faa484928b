// What batch_norm and its statistics apart (batch_norm_stats) have in common.
#pragma once

#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {

// eps, momentum, and more than one value per channel of x [N,C,...].
inline absl::Status CheckBatchStatistics(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "eps", ctx.attrs.GetFloat("eps") >= 0, "0 or more"));
  const double momentum = ctx.attrs.GetFloat("momentum");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "momentum", momentum >= 0 && momentum <= 1, "0..1"));
  const ir::ValueType& x = ctx.inputs[0];
  const int64_t channels = x.shape.dim(1);
  if (channels == 0 || x.num_elements() / channels >= 2) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": x is ", x.ToString(),
                         "; expected more than one value per channel in training");
}

// [C] as [1,C,1,1] of x's rank.
inline ir::Expr PerChannel(ir::Expr v, int rank) {
  if (!v.valid()) return v;
  Ints dims(static_cast<size_t>(rank), 1);
  dims[1] = v.shape().dim(0);
  return ReshapeTo(v, Shape(dims));
}

// Of x [N,C,...], per channel, and what they move the running statistics to.
struct BatchMoments {
  ir::Expr mean, invstd, new_mean, new_var;
};
inline BatchMoments MomentsOf(ir::Expr x, ir::Expr running_mean, ir::Expr running_var,
                              const ir::Attributes& attrs) {
  const int rank = x.shape().rank();
  const Ints axes = AxesBut(rank, 1);
  const double n =
      static_cast<double>(x.type().num_elements()) / static_cast<double>(x.shape().dim(1));
  const double m = attrs.GetFloat("momentum");
  const ir::Expr mean = Mean(x, axes);
  const ir::Expr centred = x - PerChannel(mean, rank);
  const ir::Expr var = Mean(centred * centred, axes);
  const ir::Expr invstd = 1.0 / Sqrt(var + attrs.GetFloat("eps"));
  return {mean, invstd, running_mean * (1 - m) + mean * m,
          running_var * (1 - m) + var * (m * n / (n - 1))};
}

}  // namespace halftone::ops
