// Operators on Expr, and what gradient formulas see.
#include "halftone/graph/ir/builder.h"

namespace halftone::ir {
namespace {

// Operands without a builder are poison of nobody: there is no one to tell.
Expr Binary(const char* op, Expr a, Expr b) {
  Builder* builder = a.builder() != nullptr ? a.builder() : b.builder();
  return builder == nullptr ? Expr() : builder->Op(op, {a, b});
}

Expr WithScalar(const char* op, Expr a, double b) {
  return a.builder() == nullptr ? Expr() : Binary(op, a, a.builder()->ScalarLike(a, b));
}

Expr WithScalar(const char* op, double a, Expr b) {
  return b.builder() == nullptr ? Expr() : Binary(op, b.builder()->ScalarLike(b, a), b);
}

}  // namespace

Expr operator+(Expr a, Expr b) { return Binary("add", a, b); }
Expr operator-(Expr a, Expr b) { return Binary("sub", a, b); }
Expr operator*(Expr a, Expr b) { return Binary("mul", a, b); }
Expr operator/(Expr a, Expr b) { return Binary("div", a, b); }
Expr operator-(Expr a) { return a.builder() == nullptr ? Expr() : a.builder()->Op("neg", {a}); }
Expr operator+(Expr a, double b) { return WithScalar("add", a, b); }
Expr operator-(Expr a, double b) { return WithScalar("sub", a, b); }
Expr operator*(Expr a, double b) { return WithScalar("mul", a, b); }
Expr operator/(Expr a, double b) { return WithScalar("div", a, b); }
Expr operator+(double a, Expr b) { return WithScalar("add", a, b); }
Expr operator-(double a, Expr b) { return WithScalar("sub", a, b); }
Expr operator*(double a, Expr b) { return WithScalar("mul", a, b); }
Expr operator/(double a, Expr b) { return WithScalar("div", a, b); }

Expr GradContext::dy(int i) {
  if (dys[i].valid()) return dys[i];
  const ValueType& type = node.output_type(i);
  return b.Constant(Tensor::Zeros(type.dtype, type.shape));
}

}  // namespace halftone::ir
