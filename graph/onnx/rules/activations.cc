// Activations and softmax.
#include <cmath>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

constexpr double kSeluAlpha = 1.6732632423543773, kSeluScale = 1.0507009873554805;

// As near as f32 holds a number.
bool Near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

Exprs ImportSelu(NodeImport& n) {
  const double alpha = n.Float("alpha", kSeluAlpha), gamma = n.Float("gamma", kSeluScale);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (Near(alpha, kSeluAlpha) && Near(gamma, kSeluScale)) return {n.Result("selu", {x})};
  return {n.b.Op("elu", {x}, {{"alpha", alpha}}) * gamma};
}

// alpha elu(x / alpha), which is x above 0.
Exprs ImportCelu(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (alpha == 0) n.Fail("alpha is 0");
  return {n.b.Op("elu", {x / alpha}) * alpha};
}

Exprs ImportHardSigmoid(NodeImport& n) {
  const double alpha = n.Float("alpha", 0.2), beta = n.Float("beta", 0.5);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (Near(alpha, 1.0 / 6) && beta == 0.5) return {n.Result("hardsigmoid", {x})};
  return {n.Result("hardtanh", {x * alpha + beta}, {{"min_val", 0.0}, {"max_val", 1.0}})};
}

Exprs ImportGelu(NodeImport& n) {
  return {n.Result("gelu", {n.in(0)}, {{"approximate", n.String("approximate", "none")}})};
}

// x sigmoid(alpha x)
Exprs ImportSwish(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  if (alpha == 1) return {n.Result("silu", {x})};
  return {x * ops::Sigmoid(x * alpha)};
}

Exprs ImportThresholdedRelu(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  return {ops::Where(ops::Less(n.b.ScalarLike(x, alpha), x), x, n.b.ScalarLike(x, 0))};
}

Exprs ImportShrink(NodeImport& n) {
  const double bound = n.Float("lambd", 0.5), bias = n.Float("bias", 0);
  const Expr x = n.in(0);
  if (!n.ok()) return {};
  const Expr low = n.b.ScalarLike(x, -bound), high = n.b.ScalarLike(x, bound);
  const Expr above = ops::Where(ops::Less(high, x), x - bias, n.b.ScalarLike(x, 0));
  return {ops::Where(ops::Less(x, low), x + bias, above)};
}

// The slope broadcasts to x.
Exprs ImportPRelu(NodeImport& n) {
  const Expr x = n.in(0), slope = n.in(1);
  if (!n.ok()) return {};
  return {Broadcast(ops::Where(ops::Less(x, n.b.ScalarLike(x, 0)), x * slope, x), n.shape(0))};
}

// One axis from opset 13 on; before, all from `axis` on as one.
ImportFn Softmax(const std::string& op) {
  return [op](NodeImport& n) -> Exprs {
    const Expr x = n.in(0);
    const Ints extents = n.shape(0);
    const int64_t axis = n.Int("axis", n.opset < 13 ? 1 : -1);
    if (!n.ok()) return {};
    const auto rank = static_cast<int64_t>(extents.size());
    if (n.opset >= 13 || n.Axis(axis) == rank - 1) return {n.Result(op, {x}, {{"axis", axis}})};
    const auto middle = extents.begin() + n.Axis(axis);
    if (!n.ok()) return {};
    const Expr flat =
        Reshape(x, {Product({extents.begin(), middle}), Product({middle, extents.end()})});
    return {Reshape(n.b.Op(op, {flat}), extents)};
  };
}

// 1 at the first largest element along an axis, 0 elsewhere.
Exprs ImportHardmax(NodeImport& n) {
  const Expr x = n.in(0);
  const Ints extents = n.shape(0);
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t axis = n.Axis(n.Int("axis", n.opset < 13 ? 1 : -1));
  if (!n.ok()) return {};
  const auto middle = extents.begin() + axis;
  const bool flattens = n.opset < 13 && axis + 1 < rank;
  const Expr rows =
      flattens ? Reshape(x, {Product({extents.begin(), middle}), Product({middle, extents.end()})})
               : x;
  const int64_t along = flattens ? 1 : axis, width = flattens ? Product({middle, extents.end()})
                                                              : extents[static_cast<size_t>(axis)];
  const Expr largest = n.b.Op("argmax", {rows}, {{"axis", along}, {"keepdim", true}});
  const int behind = flattens ? 0 : static_cast<int>(rank - 1 - axis);
  const Expr place = Counting(n, width, DType::kI64, behind);
  return {Reshape(ops::CastTo(ops::Equal(place, largest), n.dtype(0)), extents)};
}

ExportFn WithAxis(const std::string& op_type) {
  return [op_type](NodeExport& n) {
    n.Give(op_type, n.ins(), {{"axis", n.attrs().GetInt("axis")}});
  };
}

void ExportSilu(NodeExport& n) { n.Give("Mul", {n.in(0), n.Add("Sigmoid", n.ins())}); }

void ExportMish(NodeExport& n) {
  n.Give("Mul", {n.in(0), n.Add("Tanh", {n.Add("Softplus", n.ins())})});
}

void ExportLogSigmoid(NodeExport& n) {
  n.Give("Neg", {n.Add("Softplus", {n.Add("Neg", n.ins())})});
}

// Gelu is an operator from opset 20 on only.
void ExportGelu(NodeExport& n) {
  const std::string x = n.in(0);
  std::string phi;
  if (n.attrs().GetString("approximate") == "tanh") {
    const std::string cube = n.Add("Mul", {n.Add("Mul", {x, x}), x});
    const std::string sum = n.Add("Add", {x, n.Add("Mul", {cube, n.Number(0.044715)})});
    phi = n.Add("Tanh", {n.Add("Mul", {sum, n.Number(std::sqrt(2 / M_PI))})});
  } else {
    phi = n.Add("Erf", {n.Add("Mul", {x, n.Number(std::sqrt(0.5))})});
  }
  const std::string twice = n.Add("Mul", {x, n.Add("Add", {phi, n.Number(1)})});
  n.Give("Mul", {twice, n.Number(0.5)});
}

}  // namespace

void AddActivationRules(Rules& rules) {
  for (const auto& [op_type, op] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Relu", "relu"},
                                                                  {"Sigmoid", "sigmoid"},
                                                                  {"Tanh", "tanh"},
                                                                  {"Softplus", "softplus"},
                                                                  {"Softsign", "softsign"},
                                                                  {"HardSwish", "hardswish"}}) {
    rules.Same(op_type, op);
  }
  rules.Same("Elu", "elu", {{"alpha", "alpha", 1.0}});
  rules.Same("LeakyRelu", "leaky_relu", {{"alpha", "negative_slope", 0.01}});
  rules.Import("Selu", "selu, or elu and mul", ImportSelu);
  rules.Export("selu", "Selu", [](NodeExport& n) {
    n.Give("Selu", n.ins(), {{"alpha", kSeluAlpha}, {"gamma", kSeluScale}});
  });
  rules.Import("Celu", "elu, mul", ImportCelu);
  rules.Import("HardSigmoid", "hardsigmoid, or hardtanh", ImportHardSigmoid);
  rules.Export("hardsigmoid", "HardSigmoid", [](NodeExport& n) {
    n.Give("HardSigmoid", n.ins(), {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  });
  rules.Import("Gelu", "gelu", ImportGelu);
  rules.Export("gelu", "Erf, or Tanh, and Mul, Add", ExportGelu);
  rules.Import("Mish", "mish",
               [](NodeImport& n) -> Exprs { return {n.Result("mish", {n.in(0)})}; });
  rules.Export("mish", "Softplus, Tanh, Mul", ExportMish);
  rules.Import("Swish", "silu, or sigmoid and mul", ImportSwish);
  rules.Export("silu", "Sigmoid, Mul", ExportSilu);
  rules.Export("logsigmoid", "Neg, Softplus, Neg", ExportLogSigmoid);
  rules.Import("ThresholdedRelu", "where", ImportThresholdedRelu);
  rules.Import("Shrink", "where", ImportShrink);
  rules.Import("PRelu", "where, mul", ImportPRelu);
  rules.Import("Softmax", "softmax", Softmax("softmax"));
  rules.Export("softmax", "Softmax", WithAxis("Softmax"));
  rules.Import("LogSoftmax", "log_softmax", Softmax("log_softmax"));
  rules.Export("log_softmax", "LogSoftmax", WithAxis("LogSoftmax"));
  rules.Import("Hardmax", "argmax, equal, cast", ImportHardmax);
}

}  // namespace halftone::onnx
