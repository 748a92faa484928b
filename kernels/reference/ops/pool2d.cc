// max_pool2d, avg_pool2d and their gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

using ops::PoolGeometry;

// Element of x at offset `k` of the window of output element `y`; -1 in the padding.
int64_t PoolSource(const PoolGeometry& g, int64_t y, int64_t k) {
  const int64_t j = y % g.w.output, i = y / g.w.output % g.h.output;
  const int64_t plane = y / (g.w.output * g.h.output);
  const int64_t row = g.h.Position(i, k / g.w.kernel);
  const int64_t column = g.w.Position(j, k % g.w.kernel);
  if (row < 0 || row >= g.h.input || column < 0 || column >= g.w.input) return -1;
  return (plane * g.h.input + row) * g.w.input + column;
}

double PoolDivisor(const PoolGeometry& g, int64_t y, bool count_include_pad) {
  return static_cast<double>(
      ops::AveragePoolDivisor(g, y / g.w.output % g.h.output, y % g.w.output, count_include_pad));
}

RefRun MakeMaxPool(RefNode& node) {
  const PoolGeometry g = ops::PoolGeometryOf(node.attrs, node.in(0));
  const int64_t size = node.out(0).num_elements(), window = g.h.kernel * g.w.kernel;
  return [=](const RefCall& call) {
    for (int64_t y = 0; y < size; ++y) {
      double best = -std::numeric_limits<double>::infinity();
      int64_t index = -1;
      for (int64_t k = 0; k < window && !std::isnan(best); ++k) {
        const int64_t x = PoolSource(g, y, k);
        if (x < 0) continue;
        const double value = call.Load(0, x);
        if (index < 0 || value > best || std::isnan(value)) {
          best = value;
          index = k;
        }
      }
      call.Store(0, y, best);
      call.StoreInt(1, y, index < 0 ? 0 : index);
    }
  };
}

RefRun MakeMaxPoolGrad(RefNode& node) {
  const PoolGeometry g = ops::PoolGeometryOf(node.attrs, node.out(0));
  const int64_t size = node.in(0).num_elements(), x_size = node.out(0).num_elements();
  node.workspace_bytes = sizeof(double) * x_size;
  return [=](const RefCall& call) {
    double* const dx = call.workspace<double>();
    std::fill(dx, dx + x_size, 0.0);
    for (int64_t y = 0; y < size; ++y) {
      const int64_t x = PoolSource(g, y, call.LoadInt(1, y));
      if (x >= 0) dx[x] += call.Load(0, y);
    }
    StoreAll(call, 0, x_size, dx);
  };
}

RefRun MakeAvgPool(RefNode& node) {
  const PoolGeometry g = ops::PoolGeometryOf(node.attrs, node.in(0));
  const int64_t size = node.out(0).num_elements(), window = g.h.kernel * g.w.kernel;
  const bool count_include_pad = node.attrs.GetBool("count_include_pad");
  return [=](const RefCall& call) {
    for (int64_t y = 0; y < size; ++y) {
      double sum = 0;
      for (int64_t k = 0; k < window; ++k) {
        const int64_t x = PoolSource(g, y, k);
        if (x >= 0) sum += call.Load(0, x);
      }
      call.Store(0, y, sum / PoolDivisor(g, y, count_include_pad));
    }
  };
}

RefRun MakeAvgPoolGrad(RefNode& node) {
  const PoolGeometry g = ops::PoolGeometryOf(node.attrs, node.out(0));
  const int64_t size = node.in(0).num_elements(), x_size = node.out(0).num_elements();
  const int64_t window = g.h.kernel * g.w.kernel;
  const bool count_include_pad = node.attrs.GetBool("count_include_pad");
  node.workspace_bytes = sizeof(double) * x_size;
  return [=](const RefCall& call) {
    double* const dx = call.workspace<double>();
    std::fill(dx, dx + x_size, 0.0);
    for (int64_t y = 0; y < size; ++y) {
      const double share = call.Load(0, y) / PoolDivisor(g, y, count_include_pad);
      for (int64_t k = 0; k < window; ++k) {
        const int64_t x = PoolSource(g, y, k);
        if (x >= 0) dx[x] += share;
      }
    }
    StoreAll(call, 0, x_size, dx);
  };
}

}  // namespace

void Register_reference_pool2d(KernelRegistry& r) {
  AddReference(r, "max_pool2d", ir::kFloats, MakeMaxPool);
  AddReference(r, "max_pool2d_grad", ir::kFloats, MakeMaxPoolGrad);
  AddReference(r, "avg_pool2d", ir::kFloats, MakeAvgPool);
  AddReference(r, "avg_pool2d_grad", ir::kFloats, MakeAvgPoolGrad);
}

}  // namespace halftone::kernels
