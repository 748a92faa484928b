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

ir::Expr Exp(ir::Expr x) { return Apply("exp", {x}); }
ir::Expr Log(ir::Expr x) { return Apply("log", {x}); }
ir::Expr Abs(ir::Expr x) { return Apply("abs", {x}); }
ir::Expr Cos(ir::Expr x) { return Apply("cos", {x}); }
ir::Expr Sin(ir::Expr x) { return Apply("sin", {x}); }
ir::Expr Erf(ir::Expr x) { return Apply("erf", {x}); }
ir::Expr Tanh(ir::Expr x) { return Apply("tanh", {x}); }
ir::Expr Sigmoid(ir::Expr x) { return Apply("sigmoid", {x}); }
ir::Expr Reciprocal(ir::Expr x) { return Apply("reciprocal", {x}); }
ir::Expr Pow(ir::Expr a, ir::Expr b) { return Apply("pow", {a, b}); }
ir::Expr Maximum(ir::Expr a, ir::Expr b) { return Apply("maximum", {a, b}); }

ir::Expr Equal(ir::Expr a, ir::Expr b) { return Apply("equal", {a, b}); }
ir::Expr Less(ir::Expr a, ir::Expr b) { return Apply("less", {a, b}); }
ir::Expr LessEqual(ir::Expr a, ir::Expr b) { return Apply("less_equal", {a, b}); }
ir::Expr And(ir::Expr a, ir::Expr b) { return Apply("logical_and", {a, b}); }
ir::Expr Not(ir::Expr a) { return Apply("logical_not", {a}); }
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
