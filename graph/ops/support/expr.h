// Functions over builder expressions, so that gradients and decompositions read like formulas. A
// poison argument gives poison.
#pragma once

#include "halftone/graph/ir/builder.h"

namespace halftone::ops {

ir::Expr Exp(ir::Expr x);
ir::Expr Log(ir::Expr x);
ir::Expr Abs(ir::Expr x);
ir::Expr Cos(ir::Expr x);
ir::Expr Sin(ir::Expr x);
ir::Expr Erf(ir::Expr x);
ir::Expr Tanh(ir::Expr x);
ir::Expr Sigmoid(ir::Expr x);
ir::Expr Reciprocal(ir::Expr x);
ir::Expr Pow(ir::Expr a, ir::Expr b);
ir::Expr Maximum(ir::Expr a, ir::Expr b);

ir::Expr Equal(ir::Expr a, ir::Expr b);
ir::Expr Less(ir::Expr a, ir::Expr b);
ir::Expr LessEqual(ir::Expr a, ir::Expr b);
ir::Expr And(ir::Expr a, ir::Expr b);
ir::Expr Not(ir::Expr a);
ir::Expr Where(ir::Expr condition, ir::Expr a, ir::Expr b);

// A rank-0 constant of x's dtype.
ir::Expr Number(ir::Expr x, double value);
// Identity where nothing changes.
ir::Expr CastTo(ir::Expr x, DType dtype);
ir::Expr ReshapeTo(ir::Expr x, const Shape& shape);
ir::Expr BroadcastTo(ir::Expr x, const Shape& shape);
// The adjoint of broadcasting from `shape`: sums the repeated axes.
ir::Expr SumTo(ir::Expr x, const Shape& shape);
// 16-bit values as f32, others as they are: for formulas whose intermediate values need the range.
ir::Expr Widened(ir::Expr x);

}  // namespace halftone::ops
