// Functions over builder expressions, so that gradients and decompositions read like formulas. A
// poison argument gives poison.
#pragma once

#include "halftone/graph/ir/builder.h"

namespace halftone::ops {

// The ops of elementwise.def by the names of their formulas: Exp(x), LessEqual(a, b), Not(x).
#define HT_UNARY(op, Name, ...) ir::Expr Name(ir::Expr x);
#define HT_TUNABLE(...)
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_BINARY(op, Name, ...) ir::Expr Name(ir::Expr a, ir::Expr b);
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_LOGICAL HT_BINARY
#include "halftone/graph/ops/support/elementwise.def"
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
