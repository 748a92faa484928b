// Comparisons, logic, and choice by a condition.
#include <cmath>
#include <limits>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

Exprs ImportIsNaN(NodeImport& n) { return {n.Result("not_equal", {n.in(0), n.in(0)})}; }

Exprs ImportIsInf(NodeImport& n) {
  const Expr x = n.in(0);
  const bool negative = n.Bool("detect_negative", true), positive = n.Bool("detect_positive", true);
  if (!n.ok()) return {};
  const double inf = std::numeric_limits<double>::infinity();
  if (negative && positive) return {ops::Equal(ops::Abs(x), n.b.ScalarLike(x, inf))};
  if (negative || positive) return {ops::Equal(x, n.b.ScalarLike(x, positive ? inf : -inf))};
  return {ops::Less(x, x)};
}

void ExportNotEqual(NodeExport& n) { n.Give("Not", {n.Add("Equal", n.ins())}); }

void ExportIsFinite(NodeExport& n) {
  const std::string x = n.InAs(0, n.dtype() == DType::kF64 ? DType::kF64 : DType::kF32);
  n.Give("Not", {n.Add("Or", {n.Add("IsInf", {x}), n.Add("IsNaN", {x})})});
}

}  // namespace

void AddCompareRules(Rules& rules) {
  for (const auto& [op_type, op] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Equal", "equal"},
           {"Less", "less"},
           {"LessOrEqual", "less_equal"},
           {"Greater", "greater"},
           {"GreaterOrEqual", "greater_equal"},
           {"And", "logical_and"},
           {"Or", "logical_or"},
           {"Not", "logical_not"},
           {"Where", "where"}}) {
    rules.Same(op_type, op);
  }
  rules.Import("Xor", "not_equal",
               [](NodeImport& n) -> Exprs { return {n.Result("not_equal", n.inputs())}; });
  rules.Import("IsNaN", "not_equal", ImportIsNaN);
  rules.Import("IsInf", "abs, equal", ImportIsInf);
  rules.Export("not_equal", "Equal, Not", ExportNotEqual);
  rules.Export("isfinite", "IsInf, IsNaN, Or, Not", ExportIsFinite);
}

}  // namespace halftone::onnx
