// relu gelu sigmoid tanh silu and their gradients. Each gradient is an op of its own, so that a
// 16-bit gradient is rounded once.

#include <numbers>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Attributes;
using ir::Builder;
using ir::Expr;
using ir::GradContext;
using Formula = std::function<Expr(const std::vector<Expr>& inputs, const Attributes& attrs)>;

constexpr double kActivationFlops = 12;

ir::OpRecord ActivationOp(std::string name, std::vector<std::string> inputs, std::string doc,
                          std::string source, ir::AmpTrait amp) {
  ir::OpRecord op = ElementwiseOp(std::move(name), std::move(inputs), ir::kFloats, std::move(doc),
                                  std::move(source), std::move(amp));
  op.infer = InferSameTypes;
  op.cost = FlopsPerOutput(kActivationFlops);
  return op;
}

std::function<std::vector<Expr>(Builder&, const std::vector<Expr>&, const Attributes&)> As(
    Formula formula) {
  return [formula](Builder&, const std::vector<Expr>& inputs, const Attributes& attrs) {
    return std::vector<Expr>{formula(inputs, attrs)};
  };
}

// The op's gradient is one other op: of the input x, or of the output y.
void GradientByInput(ir::OpRecord& op, std::string grad_op) {
  op.gradient_ops = {grad_op};
  op.gradient = [grad_op](GradContext& c) {
    c.set_dx(0, c.b.Op(grad_op, {c.in(0), c.dy(0)}, c.attrs()));
  };
}
void GradientByOutput(ir::OpRecord& op, std::string grad_op) {
  op.gradient_ops = {grad_op};
  op.gradient = [grad_op](GradContext& c) {
    c.set_dx(0, c.b.Op(grad_op, {c.out(0), c.dy(0)}, c.attrs()));
  };
}

void AddRelu(ir::OpRegistry& r) {
  const ir::AmpTrait exact = Clear("exact in every dtype");
  ir::OpRecord relu = ActivationOp("relu", {"x"}, "y = max(x, 0); NaN stays NaN",
                                   "Nair, Hinton: Rectified linear units improve restricted "
                                   "Boltzmann machines, ICML 2010",
                                   exact);
  relu.cost = FlopsPerOutput(1);
  relu.decompose = As([](auto& in, auto&) { return Maximum(in[0], Number(in[0], 0)); });
  GradientByOutput(relu, "relu_grad");
  AddOp(r, std::move(relu));

  ir::OpRecord grad = ActivationOp("relu_grad", {"y", "dy"}, "dx = y <= 0 ? 0 : dy",
                                   "PyTorch: threshold_backward", exact);
  grad.cost = FlopsPerOutput(1);
  grad.decompose = As([](auto& in, auto&) {
    const Expr zero = Number(in[0], 0);
    return Where(LessEqual(in[0], zero), zero, in[1]);
  });
  AddOp(r, std::move(grad));
}

void AddSigmoid(ir::OpRegistry& r) {
  ir::OpRecord sigmoid = ActivationOp("sigmoid", {"x"}, "y = 1 / (1 + e^-x)", "PyTorch: sigmoid",
                                      InferAcc("bounded; the exponential stays inside, in f32"));
  sigmoid.decompose = As([](auto& in, auto&) { return Reciprocal(Exp(-in[0]) + 1.0); });
  GradientByOutput(sigmoid, "sigmoid_grad");
  AddOp(r, std::move(sigmoid));

  ir::OpRecord grad = ActivationOp("sigmoid_grad", {"y", "dy"}, "dx = dy y (1 - y)",
                                   "PyTorch: sigmoid_backward", InferAcc("follows sigmoid"));
  grad.cost = FlopsPerOutput(3);
  grad.decompose = As([](auto& in, auto&) { return in[1] * (in[0] * (1.0 - in[0])); });
  AddOp(r, std::move(grad));
}

void AddTanh(ir::OpRegistry& r) {
  ir::OpRecord tanh = ActivationOp("tanh", {"x"}, "y = tanh x", "C standard: tanh",
                                   InferAcc("bounded; the exponential stays inside, in f32"));
  GradientByOutput(tanh, "tanh_grad");
  AddOp(r, std::move(tanh));

  ir::OpRecord grad = ActivationOp("tanh_grad", {"y", "dy"}, "dx = dy (1 - y^2)",
                                   "PyTorch: tanh_backward", InferAcc("follows tanh"));
  grad.cost = FlopsPerOutput(3);
  grad.decompose = As([](auto& in, auto&) { return in[1] * (1.0 - in[0] * in[0]); });
  AddOp(r, std::move(grad));
}

void AddSilu(ir::OpRegistry& r) {
  ir::OpRecord silu =
      ActivationOp("silu", {"x"}, "y = x sigmoid(x)",
                   "Elfwing, Uchibe, Doya: Sigmoid-weighted linear units, 2017, equation 7",
                   InferAcc("grows like x; the exponential stays inside, in f32"));
  silu.decompose = As([](auto& in, auto&) { return in[0] * Sigmoid(in[0]); });
  GradientByInput(silu, "silu_grad");
  AddOp(r, std::move(silu));

  ir::OpRecord grad =
      ActivationOp("silu_grad", {"x", "dy"}, "dx = dy s (1 + x (1 - s)), s = sigmoid(x)",
                   "PyTorch: silu_backward", InferAcc("follows silu"));
  grad.decompose = As([](auto& in, auto&) {
    const Expr s = Sigmoid(in[0]);
    return in[1] * (s * (in[0] * (1.0 - s) + 1.0));
  });
  AddOp(r, std::move(grad));
}

// The tanh form is x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kGeluCubic = 0.044715;

Expr GeluInner(Expr x) { return (x * x * x * kGeluCubic + x) * kGeluScale; }

Expr GeluGradFormula(Expr x, Expr dy, bool by_tanh) {
  if (by_tanh) {
    const Expr t = Tanh(GeluInner(x));
    const Expr inner_slope = (x * x * (3 * kGeluCubic) + 1.0) * kGeluScale;
    return dy * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner_slope);
  }
  const Expr cdf = (Erf(x / std::numbers::sqrt2) + 1.0) * 0.5;
  const Expr density = Exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return dy * (cdf + x * density);
}

Types InferGelu(const ir::InferContext& ctx) {
  const std::string& approximate = ctx.attrs.GetString("approximate");
  if (approximate != "none" && approximate != "tanh") {
    return OpError(ctx, "approximate \"", approximate, "\"; expected \"none\" or \"tanh\"");
  }
  return InferSameTypes(ctx);
}

void AddGelu(ir::OpRegistry& r) {
  const ir::AttrSpec approximate =
      Optional("approximate", std::string("none"), "\"none\": by erf; \"tanh\": the tanh form");
  ir::OpRecord gelu =
      ActivationOp("gelu", {"x"},
                   "y = x Phi(x), Phi the normal distribution function; \"tanh\": "
                   "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2",
                   "Hendrycks, Gimpel: Gaussian error linear units, 2016, section 2",
                   InferAcc("grows like x; erf, tanh and the cube stay inside, in f32"));
  gelu.attrs = {approximate};
  gelu.infer = InferGelu;
  gelu.decompose = As([](auto& in, auto& attrs) {
    const Expr x = in[0];
    const bool by_tanh = attrs.GetString("approximate") == "tanh";
    const Expr bounded = by_tanh ? Tanh(GeluInner(x)) : Erf(x / std::numbers::sqrt2);
    return x * 0.5 * (bounded + 1.0);
  });
  GradientByInput(gelu, "gelu_grad");
  AddOp(r, std::move(gelu));

  ir::OpRecord grad = ActivationOp("gelu_grad", {"x", "dy"},
                                   "dx = dy (Phi(x) + x phi(x)), phi the normal density; \"tanh\": "
                                   "the derivative of the tanh form",
                                   "derivative of gelu", InferAcc("follows gelu"));
  grad.attrs = {approximate};
  grad.infer = InferGelu;
  grad.decompose = As([](auto& in, auto& attrs) {
    return GeluGradFormula(in[0], in[1], attrs.GetString("approximate") == "tanh");
  });
  AddOp(r, std::move(grad));
}

}  // namespace

void Register_activation(ir::OpRegistry& r) {
  AddRelu(r);
  AddSigmoid(r);
  AddTanh(r);
  AddSilu(r);
  AddGelu(r);
}

}  // namespace halftone::ops
