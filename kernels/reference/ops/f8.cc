// f8_quantise, f8_matmul and f8_scale_update.
#include <algorithm>
#include <cmath>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

RefRun MakeF8Quantise(RefNode& node) {
  const int64_t n = node.in(0).num_elements();
  return [=](const RefCall& call) {
    const double scale = call.Load(1, 0);
    double amax = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double x = call.Load(0, i);
      call.Store(0, i, x * scale);
      // A NaN stays once it is there.
      if (std::isnan(x) || std::abs(x) > amax) amax = std::abs(x);
    }
    call.Store(1, 0, 1 / scale);
    call.Store(2, 0, amax);
  };
}

RefRun MakeF8Matmul(RefNode& node) {
  const bool ta = node.attrs.GetBool("transpose_a"), tb = node.attrs.GetBool("transpose_b");
  const Shape b_shape = node.in(1);
  const int64_t inner = b_shape[tb ? 1 : 0], columns = b_shape[tb ? 0 : 1];
  const int64_t rows = columns == 0 ? 0 : node.out(0).num_elements() / columns;
  const bool has_bias = node.has_in(4);
  node.workspace_bytes = sizeof(double) * (rows + columns) * inner;
  return [=](const RefCall& call) {
    double* const a = call.workspace<double>();
    double* const b = a + rows * inner;
    LoadAll(call, 0, rows * inner, a);
    LoadAll(call, 1, columns * inner, b);
    const double inverse = call.Load(2, 0) * call.Load(3, 0);
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += a[ta ? k * rows + m : m * inner + k] * b[tb ? n * inner + k : k * columns + n];
        }
        call.Store(0, m * columns + n, sum * inverse + (has_bias ? call.Load(4, n) : 0));
      }
    }
  };
}

// Reads all of the history before it writes: the outputs may be the inputs.
RefRun MakeF8ScaleUpdate(RefNode& node) {
  const int64_t length = node.in(0).num_elements();
  const double largest = std::ldexp(MaxFinite(node.attrs.GetDType("to")),
                                    -static_cast<int>(node.attrs.GetInt("margin")));
  node.workspace_bytes = sizeof(double) * length;
  return [=](const RefCall& call) {
    double* const history = call.workspace<double>();
    LoadAll(call, 0, length, history);
    const double scale = call.Load(1, 0), amax = call.Load(2, 0);
    std::copy_backward(history, history + length - 1, history + length);
    history[0] = std::isfinite(amax) ? amax : 0;
    StoreAll(call, 0, length, history);
    const double seen = *std::max_element(history, history + length);
    const double wanted = std::floor(std::log2(largest / seen));
    call.Store(1, 0, seen > 0 ? std::exp2(std::clamp(wanted, -60.0, 60.0)) : scale);
  };
}

}  // namespace

void Register_reference_f8(KernelRegistry& r) {
  AddReference(r, "f8_quantise", {DType::kF32, DType::kF16, DType::kBF16}, MakeF8Quantise);
  AddReference(r, "f8_matmul", {DType::kF8E4M3, DType::kF8E5M2}, MakeF8Matmul);
  AddReference(r, "f8_scale_update", {DType::kF32}, MakeF8ScaleUpdate);
}

}  // namespace halftone::kernels
