#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/passes/rewrite/simplify_rules.h"

namespace halftone::passes {
namespace {

// The operand at `port` where the node is equal to it: the types must agree, since the other
// operand may have broadcast it.
ir::Value Operand(const ir::Node& node, int port) {
  return node.input_type(port) == node.output_type() ? node.input(port) : ir::Value();
}

// The other operand where one of the two is `neutral` throughout.
ir::Value DropNeutral(const ir::Node& node, double neutral) {
  for (int port : {0, 1}) {
    if (IsSplat(node.input(1 - port), neutral)) return Operand(node, port);
  }
  return {};
}

// x + -0 = x for every x. x + +0 is not: it turns -0 into +0. Integers have one zero.
ir::Value AddZero(ir::Node& node) {
  return DropNeutral(node, IsFloat(node.output_type().dtype) ? -0.0 : 0.0);
}

// x - +0 = x for every x; -0 - -0 would be +0.
ir::Value SubtractZero(ir::Node& node) {
  return IsSplat(node.input(1), 0.0) ? Operand(node, 0) : ir::Value();
}

ir::Value MultiplyByOne(ir::Node& node) { return DropNeutral(node, 1.0); }

ir::Value DivideByOne(ir::Node& node) {
  return IsSplat(node.input(1), 1.0) ? Operand(node, 0) : ir::Value();
}

ir::Value PowerOne(ir::Node& node) {
  return IsSplat(node.input(1), 1.0) ? Operand(node, 0) : ir::Value();
}

// The square of an f32 is exact in f64, where the reference computes, so pow and mul round the same
// number. In f64 pow may be an ulp off, and stays.
ir::Value PowerTwo(ir::Node& node) {
  if (!IsSplat(node.input(1), 2.0) || node.output_type().dtype == DType::kF64) return {};
  const ir::Value x = Operand(node, 0);
  if (!x.valid()) return {};
  ir::Builder b = BuilderLike(node, "simplify");
  b.NameNext(node.name());
  return b.Op("mul", {b.Wrap(x), b.Wrap(x)}).value();
}

// f(f(x)) = x.
ir::Value Involution(ir::Node& node) {
  const ir::Node& inner = *node.input(0).node;
  return &inner.op() == &node.op() ? inner.input(0) : ir::Value();
}

// f(f(x)) = f(x).
ir::Value Idempotent(ir::Node& node) {
  return &node.input(0).node->op() == &node.op() ? node.input(0) : ir::Value();
}

// f(x, x) = x.
ir::Value SameOperands(ir::Node& node) {
  return node.input(0) == node.input(1) ? Operand(node, 0) : ir::Value();
}

// where(c, x, x) = x.
ir::Value SameBranches(ir::Node& node) {
  return node.input(1) == node.input(2) ? Operand(node, 1) : ir::Value();
}

}  // namespace

const std::vector<SimplifyRule>& ArithmeticRules() {
  static const auto* const rules = new std::vector<SimplifyRule>{
      {"add", "add_zero", &AddZero},
      {"sub", "subtract_zero", &SubtractZero},
      {"mul", "multiply_by_one", &MultiplyByOne},
      {"div", "divide_by_one", &DivideByOne},
      {"pow", "power_one", &PowerOne},
      {"pow", "power_two", &PowerTwo},
      {"neg", "involution", &Involution},
      {"logical_not", "involution", &Involution},
      {"relu", "idempotent", &Idempotent},
      {"abs", "idempotent", &Idempotent},
      {"floor", "idempotent", &Idempotent},
      {"maximum", "same_operands", &SameOperands},
      {"minimum", "same_operands", &SameOperands},
      {"logical_and", "same_operands", &SameOperands},
      {"logical_or", "same_operands", &SameOperands},
      {"where", "same_branches", &SameBranches},
  };
  return *rules;
}

}  // namespace halftone::passes
