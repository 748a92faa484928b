#include <algorithm>
#include <cmath>
#include <numbers>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

// Where e^(-|x| / 2), and e^(-x^2 / 4), are 0: an infinite x is taken from here, as 0 * inf is NaN.
constexpr double kSiluBound = 2000, kGeluBound = 60;

// Phi(x) by erfc, which keeps its digits far below 0.
double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double NormalDensity(double x) {
  return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// x sigmoid(v), v of the sign of x. The factors of what decays are its square roots, which do not
// underflow before the product does.
double Gated(double x, double v) {
  const double h = std::exp(-0.5 * std::abs(v));
  return (x < 0 ? x * h * h : x) / (1 + h * h);
}
double GatedSlope(double x, double v, double dv) {
  return SigmoidOf(v) * (1 + x * SigmoidOf(-v) * dv);
}

// The tanh form is x sigmoid(v) with v = 2 sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kTwoRootTwoOverPi = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
double GateOf(double x) { return kTwoRootTwoOverPi * (x + 0.044715 * x * x * x); }

double Clamped(double x, double bound) { return std::isnan(x) ? x : std::clamp(x, -bound, bound); }

double Silu(double x) {
  const double c = std::max(x, -kSiluBound);
  return Gated(c, c);
}
double SiluGrad(double x, double dy) {
  const double c = Clamped(x, kSiluBound);
  return dy * GatedSlope(c, c, 1);
}
double GeluErf(double x) {
  const double c = std::max(x, -kGeluBound);
  return c * NormalCdf(c);
}
double GeluTanh(double x) {
  const double c = std::max(x, -kGeluBound);
  return Gated(c, GateOf(c));
}
double GeluErfGrad(double x, double dy) {
  const double c = Clamped(x, kGeluBound);
  return dy * (NormalCdf(c) + c * NormalDensity(c));
}
double GeluTanhGrad(double x, double dy) {
  const double c = Clamped(x, kGeluBound);
  return dy * GatedSlope(c, GateOf(c), kTwoRootTwoOverPi * (1 + 3 * 0.044715 * c * c));
}

bool ByTanh(const RefNode& node) { return node.attrs.GetString("approximate") == "tanh"; }

}  // namespace

void Register_reference_activation(KernelRegistry& r) {
  AddReference1(r, "relu", ir::kFloats, [](double x) { return x < 0 ? 0 : x; });
  AddReference1(r, "sigmoid", ir::kFloats, SigmoidOf);
  AddReference1(r, "tanh", ir::kFloats, [](double x) { return std::tanh(x); });
  AddReference1(r, "silu", ir::kFloats, Silu);
  AddReference(r, "gelu", ir::kFloats, [](RefNode& node) -> RefRun {
    return [size = node.out(0).num_elements(),
            gelu = ByTanh(node) ? GeluTanh : GeluErf](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Store(0, i, gelu(call.Load(0, i)));
    };
  });

  AddReference2(r, "relu_grad", ir::kFloats, [](double y, double dy) { return y <= 0 ? 0 : dy; });
  AddReference2(r, "sigmoid_grad", ir::kFloats,
                [](double y, double dy) { return dy * (y * (1 - y)); });
  AddReference2(r, "tanh_grad", ir::kFloats, [](double y, double dy) { return dy * (1 - y * y); });
  AddReference2(r, "silu_grad", ir::kFloats, SiluGrad);
  AddReference(r, "gelu_grad", ir::kFloats, [](RefNode& node) -> RefRun {
    return [size = node.out(0).num_elements(),
            grad = ByTanh(node) ? GeluTanhGrad : GeluErfGrad](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) {
        call.Store(0, i, grad(call.Load(0, i), call.Load(1, i)));
      }
    };
  });
}

}  // namespace halftone::kernels
