#include "halftone/graph/ops/support/expr.h"

#include "halftone/graph/ops/support/infer.h"

namespace halftone::ops {
namespace {

ir::Expr Apply(const char* op, std::initializer_list<ir::Expr> inputs, ir::Attributes attrs = {}) {
  for (const ir::Expr& x : inputs) {
    if (!x.valid()) return ir::Expr();
  }
  return inputs.begin()->builder()->Op(op, inputs, std::move(attrs));
}

}  // namespace

#define HT_UNARY(op, Name, ...) \
  ir::Expr Name(ir::Expr x) { return Apply(#op, {x}); }
#define HT_TUNABLE(...)
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_BINARY(op, Name, ...) \
  ir::Expr Name(ir::Expr a, ir::Expr b) { return Apply(#op, {a, b}); }
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_LOGICAL HT_BINARY
#include "halftone/graph/ops/support/elementwise.def"

ir::Expr Where(ir::Expr condition, ir::Expr a, ir::Expr b) {
  return Apply("where", {condition, a, b});
}

ir::Expr Number(ir::Expr x, double value) {
  return x.valid() ? x.builder()->ScalarLike(x, value) : ir::Expr();
}
ir::Expr CastTo(ir::Expr x, DType dtype) {
  if (!x.valid() || x.dtype() == dtype) return x;
  return Apply("cast", {x}, {{"to", dtype}});
}
ir::Expr ReshapeTo(ir::Expr x, const Shape& shape) {
  if (!x.valid() || x.shape() == shape) return x;
  return Apply("reshape", {x}, {{"shape", ToInts(shape)}});
}
ir::Expr BroadcastTo(ir::Expr x, const Shape& shape) {
  if (!x.valid() || x.shape() == shape) return x;
  return Apply("broadcast_to", {x}, {{"shape", ToInts(shape)}});
}
ir::Expr SumTo(ir::Expr x, const Shape& shape) {
  if (!x.valid() || x.shape() == shape) return x;
  return Apply("sum_to_shape", {x}, {{"shape", ToInts(shape)}});
}
ir::Expr Widened(ir::Expr x) { return x.valid() && IsLow(x.dtype()) ? CastTo(x, DType::kF32) : x; }

}  // namespace halftone::ops
