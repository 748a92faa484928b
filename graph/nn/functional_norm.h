// Normalisation. Statistics, gamma and beta stay f32 in 16-bit graphs. They are of x's dtype, or of
// f32 if x is 16-bit; other operands are cast to that. An f64 operand makes all of them f64.
#pragma once

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// Over the last axes, as many as gamma has: (x - mean) / sqrt(var + eps) * gamma + beta, with the
// biased variance. Shapes: gamma and beta like those axes of x.
Value layer_norm(const Value& x, const Value& gamma, const Value& beta, double eps = 1e-5,
                 Loc loc = Loc::current());
// Over all axes but 1, with given statistics. Shapes: x [N,C,..], the rest [C].
Value batch_norm_inference(const Value& x, const Value& gamma, const Value& beta, const Value& mean,
                           const Value& var, double eps = 1e-5, Loc loc = Loc::current());
// Over all axes but 1, with the batch's own statistics. Gives y, the batch's mean, its 1/sqrt(var +
// eps), and the running mean and (unbiased) variance after this batch: new = (1 - momentum) * old +
// momentum * batch. Nothing is written; nn::BatchNorm2d writes its buffers.
Values batch_norm_training(const Value& x, const Value& gamma, const Value& beta,
                           const Value& running_mean, const Value& running_var,
                           double momentum = 0.1, double eps = 1e-5, Loc loc = Loc::current());

}  // namespace halftone::nn
