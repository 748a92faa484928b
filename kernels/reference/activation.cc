#include <cmath>
#include <numbers>

#include "halftone/kernels/reference/reference_util.h"

namespace halftone::kernels {
namespace {

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

// Phi(x) by erfc, which keeps its digits far below 0.
double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double NormalDensity(double x) {
  return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

constexpr double kRootTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
double TanhOfInner(double x) { return std::tanh(kRootTwoOverPi * (x + 0.044715 * x * x * x)); }

double GeluErf(double x) { return x * NormalCdf(x); }
double GeluTanh(double x) { return 0.5 * x * (1 + TanhOfInner(x)); }
double GeluErfGrad(double x, double dy) { return dy * (NormalCdf(x) + x * NormalDensity(x)); }
double GeluTanhGrad(double x, double dy) {
  const double t = TanhOfInner(x);
  const double slope = kRootTwoOverPi * (1 + 3 * 0.044715 * x * x);
  return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
}

bool ByTanh(const RefNode& node) { return node.attrs.GetString("approximate") == "tanh"; }

}  // namespace

void Register_reference_activation(KernelRegistry& r) {
  AddReference1(r, "relu", ir::kFloats, [](double x) { return x < 0 ? 0 : x; });
  AddReference1(r, "sigmoid", ir::kFloats, SigmoidOf);
  AddReference1(r, "tanh", ir::kFloats, [](double x) { return std::tanh(x); });
  AddReference1(r, "silu", ir::kFloats, [](double x) { return x * SigmoidOf(x); });
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
  AddReference2(r, "silu_grad", ir::kFloats, [](double x, double dy) {
    const double s = SigmoidOf(x);
    return dy * (s * (1 + x * (1 - s)));
  });
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
