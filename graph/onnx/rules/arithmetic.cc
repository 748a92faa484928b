// Elementwise arithmetic and functions.
#include <limits>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

// Toward zero. The quotient of whole numbers below 2^53 in f64 does not round up to a whole number.
Expr Truncated(Expr x) {
  return ops::Where(ops::Less(x, x.builder()->ScalarLike(x, 0)), -ops::Floor(-x), ops::Floor(x));
}

// a / b, of whole numbers toward zero as C++ has it.
Exprs ImportDiv(NodeImport& n) {
  const Expr a = n.in(0), b = n.in(1);
  if (!n.ok()) return {};
  if (!IsInteger(a.dtype())) return {n.Result("div", {a, b})};
  const Expr quotient = ops::CastTo(a, DType::kF64) / ops::CastTo(b, DType::kF64);
  return {ops::CastTo(quotient, a.dtype())};
}

// fmod = 1: the sign of a, as C's fmod; else of b, as Python's %, whole numbers only.
Exprs ImportMod(NodeImport& n) {
  const Expr a = n.in(0), b = n.in(1);
  const bool like_c = n.Bool("fmod", false);
  if (!n.ok()) return {};
  const Expr x = ops::CastTo(a, DType::kF64), y = ops::CastTo(b, DType::kF64);
  const Expr quotient = x / y;
  const Expr whole = like_c ? Truncated(quotient) : ops::Floor(quotient);
  Expr rest = x - whole * y;
  if (!n.ok()) return {};
  if (IsFloat(a.dtype())) {  // into an infinite b a finite a goes no time, or once if signs differ
    const Expr zero = n.b.ScalarLike(x, 0);
    const Expr apart =
        ops::And(ops::NotEqual(ops::Less(x, zero), ops::Less(y, zero)), ops::NotEqual(x, zero));
    const Expr infinite =
        ops::And(ops::IsFinite(x), ops::Not(ops::Or(ops::IsFinite(y), ops::NotEqual(y, y))));
    rest = ops::Where(infinite, like_c ? x : ops::Where(apart, y, x), rest);
  }
  return {ops::CastTo(rest, a.dtype())};
}

// The exponent may have another dtype; whole numbers are computed in f64.
Exprs ImportPow(NodeImport& n) {
  const Expr a = n.in(0), b = n.in(1);
  if (!n.ok()) return {};
  const DType wide = IsFloat(a.dtype()) ? a.dtype() : DType::kF64;
  if (wide == a.dtype() && b.dtype() == wide) return {n.Result("pow", {a, b})};
  return {ops::CastTo(ops::Pow(ops::CastTo(a, wide), ops::CastTo(b, wide)), a.dtype())};
}

// One or more operands, the op between each two.
ImportFn Folded(const std::string& op) {
  return [op](NodeImport& n) -> Exprs {
    Expr y = n.in(0);
    for (int i = 1; i < n.num_inputs(); ++i) {
      const bool last = i + 1 == n.num_inputs();
      y = last ? n.Result(op, {y, n.in(i)}) : n.b.Op(op, {y, n.in(i)});
    }
    return {y};
  };
}

Exprs ImportMean(NodeImport& n) {
  const Exprs sum = Folded("add")(n);
  if (!n.ok()) return {};
  return {sum[0] / static_cast<double>(n.num_inputs())};
}

// y = f(x) by a formula.
ImportFn Formula(Expr (*f)(Expr)) {
  return [f](NodeImport& n) -> Exprs {
    const Expr x = n.in(0);
    if (!n.ok()) return {};
    return {f(x)};
  };
}

Expr Tan(Expr x) { return ops::Sin(x) / ops::Cos(x); }
Expr Cosh(Expr x) { return (ops::Exp(x) + ops::Exp(-x)) * 0.5; }
// (e^x - e^-x) / 2 by expm1, which keeps the digits around 0.
Expr Sinh(Expr x) { return (ops::Expm1(x) - ops::Expm1(-x)) * 0.5; }
// Of |x|, with the sign of x: log(x + sqrt(x^2 + 1)) = log1p(x + x^2 / (1 + sqrt(x^2 + 1))).
Expr Asinh(Expr x) {
  const Expr size = ops::Abs(x), square = size * size;
  return ops::Sign(x) * ops::Log1p(size + square / (ops::Sqrt(square + 1.0) + 1.0));
}
Expr Acosh(Expr x) { return ops::Log(x + ops::Sqrt(x * x - 1.0)); }
Expr Atanh(Expr x) { return (ops::Log1p(x) - ops::Log1p(-x)) * 0.5; }

Exprs ImportClip(NodeImport& n) {
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (n.has_attr("min") || n.has_attr("max")) {  // before opset 11
    const double largest = std::numeric_limits<float>::max();
    return {
        n.Result("hardtanh", {x},
                 {{"min_val", n.Float("min", -largest)}, {"max_val", n.Float("max", largest)}})};
  }
  const Tensor *low = n.Constant(1), *high = n.Constant(2);
  const bool numbers = low != nullptr && high != nullptr && low->num_elements() == 1 &&
                       high->num_elements() == 1 && IsFloat(x.dtype());
  if (numbers && low->at(0) <= high->at(0)) {
    return {n.Result("hardtanh", {x}, {{"min_val", low->at(0)}, {"max_val", high->at(0)}})};
  }
  Expr y = x;
  if (n.has(1)) y = ops::Maximum(y, n.in(1));
  if (n.has(2)) y = ops::Minimum(y, n.in(2));
  return {y};
}

void ExportHardtanh(NodeExport& n) {
  n.Give("Clip", {n.in(0), n.Number(n.attrs().GetFloat("min_val")),
                  n.Number(n.attrs().GetFloat("max_val"))});
}

}  // namespace

void AddArithmeticRules(Rules& rules) {
  for (const auto& [op_type, op] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Add", "add"},
                                                                  {"Sub", "sub"},
                                                                  {"Mul", "mul"},
                                                                  {"Abs", "abs"},
                                                                  {"Neg", "neg"},
                                                                  {"Sign", "sign"},
                                                                  {"Floor", "floor"},
                                                                  {"Ceil", "ceil"},
                                                                  {"Round", "round"},
                                                                  {"Sqrt", "sqrt"},
                                                                  {"Exp", "exp"},
                                                                  {"Log", "log"},
                                                                  {"Sin", "sin"},
                                                                  {"Cos", "cos"},
                                                                  {"Reciprocal", "reciprocal"},
                                                                  {"Erf", "erf"}}) {
    rules.Same(op_type, op);
  }
  rules.Import("Div", "div", ImportDiv, "of int64 exact below 2^53");
  rules.Export("div", "Div", [](NodeExport& n) { n.Give("Div", n.ins()); });
  rules.Import("Mod", "div, floor, mul, sub", ImportMod, "of int64 exact below 2^53");
  rules.Import("Pow", "pow", ImportPow, "of int64 exact below 2^53");
  rules.Export("pow", "Pow", [](NodeExport& n) { n.Give("Pow", n.ins()); });
  rules.Import("Max", "maximum", Folded("maximum"));
  rules.Export("maximum", "Max", [](NodeExport& n) { n.Give("Max", n.ins()); });
  rules.Import("Min", "minimum", Folded("minimum"));
  rules.Export("minimum", "Min", [](NodeExport& n) { n.Give("Min", n.ins()); });
  rules.Import("Sum", "add", Folded("add"));
  rules.Import("Mean", "add, div", ImportMean);
  rules.Import("Tan", "sin, cos, div", Formula(Tan));
  rules.Import("Cosh", "exp, add, mul", Formula(Cosh));
  rules.Import("Sinh", "expm1, sub, mul", Formula(Sinh));
  rules.Import("Asinh", "log1p, sqrt, ...", Formula(Asinh));
  rules.Import("Acosh", "log, sqrt, ...", Formula(Acosh));
  rules.Import("Atanh", "log1p, sub, mul", Formula(Atanh));
  rules.Import("Clip", "hardtanh, or maximum and minimum", ImportClip);
  rules.Export("hardtanh", "Clip", ExportHardtanh);
  rules.Export("relu6", "Clip", [](NodeExport& n) {
    n.Give("Clip", {n.in(0), n.Number(0), n.Number(6)});
  });
  rules.Export("square", "Mul", [](NodeExport& n) { n.Give("Mul", {n.in(0), n.in(0)}); });
  rules.Export("rsqrt", "Sqrt, Reciprocal",
               [](NodeExport& n) { n.Give("Reciprocal", {n.Add("Sqrt", n.ins())}); });
  rules.Export("expm1", "Exp, Sub", [](NodeExport& n) {
    n.Give("Sub", {n.Add("Exp", n.ins()), n.Number(1)});
  });
  rules.Export("log1p", "Add, Log", [](NodeExport& n) {
    n.Give("Log", {n.Add("Add", {n.in(0), n.Number(1)})});
  });
}

}  // namespace halftone::onnx
