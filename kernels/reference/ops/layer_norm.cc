// layer_norm and layer_norm_grad.
#include <algorithm>
#include <cmath>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

// A row is what one mean and one variance cover; gamma has one value for each of its elements.
struct LayerNormRows {
  int64_t rows, size;
};

RefRun MakeLayerNorm(RefNode& node) {
  // Of rows of 0 elements mean and variance are 0 / 0, NaN, as of the op `mean`.
  const LayerNormRows s{node.out(1).num_elements(), node.in(1).num_elements()};
  const double eps = node.attrs.GetFloat("eps"), n = static_cast<double>(s.size);
  return [=](const RefCall& call) {
    for (int64_t row = 0; row < s.rows; ++row) {
      const int64_t first = row * s.size;
      double mean = 0, var = 0;
      for (int64_t i = 0; i < s.size; ++i) mean += call.Load(0, first + i);
      mean /= n;
      for (int64_t i = 0; i < s.size; ++i) {
        const double d = call.Load(0, first + i) - mean;
        var += d * d;
      }
      const double rstd = 1 / std::sqrt(var / n + eps);
      for (int64_t i = 0; i < s.size; ++i) {
        const double xhat = (call.Load(0, first + i) - mean) * rstd;
        call.Store(0, first + i, xhat * call.Load(1, i) + call.Load(2, i));
      }
      call.Store(1, row, mean);
      call.Store(2, row, rstd);
    }
  };
}

RefRun MakeLayerNormGrad(RefNode& node) {
  const LayerNormRows s{node.in(3).num_elements(), node.in(2).num_elements()};
  const double n = static_cast<double>(s.size);
  node.workspace_bytes = 2 * sizeof(double) * s.size;
  return [=](const RefCall& call) {
    double* const dgamma = call.workspace<double>();
    double* const dbeta = dgamma + s.size;
    std::fill(dgamma, dbeta + s.size, 0.0);
    for (int64_t row = 0; row < s.rows; ++row) {
      const int64_t first = row * s.size;
      const double mean = call.Load(3, row), rstd = call.Load(4, row);
      const auto xhat = [&](int64_t i) { return (call.Load(0, first + i) - mean) * rstd; };
      double mean_g = 0, mean_gx = 0;
      for (int64_t i = 0; i < s.size; ++i) {
        const double dy = call.Load(1, first + i), g = dy * call.Load(2, i);
        mean_g += g / n;
        mean_gx += g * xhat(i) / n;
        dgamma[i] += dy * xhat(i);
        dbeta[i] += dy;
      }
      for (int64_t i = 0; i < s.size; ++i) {
        const double g = call.Load(1, first + i) * call.Load(2, i);
        call.Store(0, first + i, rstd * (g - mean_g - xhat(i) * mean_gx));
      }
    }
    StoreAll(call, 1, s.size, dgamma);
    StoreAll(call, 2, s.size, dbeta);
  };
}

}  // namespace

void Register_reference_layer_norm(KernelRegistry& r) {
  AddReference(r, "layer_norm", ir::kFloats, MakeLayerNorm);
  AddReference(r, "layer_norm_grad", ir::kFloats, MakeLayerNormGrad);
}

}  // namespace halftone::kernels
