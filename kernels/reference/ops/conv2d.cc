// conv2d and its gradients: direct sums over the window.
#include <algorithm>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

using ops::ConvGeometry;

// Calls visit(x element, w element, y element) for every product that conv2d sums.
template <typename Visit>
void ForEachConvProduct(const ConvGeometry& g, const Visit& visit) {
  const int64_t c_group = g.c / g.groups, o_group = g.o / g.groups;
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t o = 0; o < g.o; ++o) {
      const int64_t first_c = o / o_group * c_group;
      for (int64_t i = 0; i < g.h.output; ++i) {
        for (int64_t j = 0; j < g.w.output; ++j) {
          const int64_t y = ((n * g.o + o) * g.h.output + i) * g.w.output + j;
          for (int64_t c = 0; c < c_group; ++c) {
            for (int64_t k = 0; k < g.h.kernel; ++k) {
              const int64_t row = g.h.Position(i, k);
              if (row < 0 || row >= g.h.input) continue;
              for (int64_t l = 0; l < g.w.kernel; ++l) {
                const int64_t column = g.w.Position(j, l);
                if (column < 0 || column >= g.w.input) continue;
                visit(((n * g.c + first_c + c) * g.h.input + row) * g.w.input + column,
                      ((o * c_group + c) * g.h.kernel + k) * g.w.kernel + l, y);
              }
            }
          }
        }
      }
    }
  }
}

// Which of x, w, y each operand of an op is.
enum ConvRole { kX, kW, kY };

// result[role] = sum over products of the two inputs; an optional bias is added to y.
RefMaker MakeConvSum(ConvRole first, ConvRole second, ConvRole result) {
  return [=](RefNode& node) -> RefRun {
    const auto shape_of = [&](ConvRole role) {
      return first == role ? node.in(0) : second == role ? node.in(1) : node.out(0);
    };
    const ConvGeometry g = ops::ConvGeometryOf(node.attrs, shape_of(kX), shape_of(kW));
    const int64_t sizes[] = {shape_of(kX).num_elements(), shape_of(kW).num_elements(),
                             shape_of(kY).num_elements()};
    const int64_t x_size = sizes[kX], w_size = sizes[kW], y_size = sizes[kY];
    node.workspace_bytes = sizeof(double) * (x_size + w_size + y_size);
    const bool has_bias = node.has_in(2);
    const int64_t plane = g.h.output * g.w.output;
    return [=](const RefCall& call) {
      double* const x = call.workspace<double>();
      double* const w = x + x_size;
      double* const y = w + w_size;
      double* const data[] = {x, w, y};
      const int64_t size[] = {x_size, w_size, y_size};
      LoadAll(call, 0, size[first], data[first]);
      LoadAll(call, 1, size[second], data[second]);
      double* const sum = data[result];
      for (int64_t i = 0; i < size[result]; ++i) {
        sum[i] = has_bias ? call.Load(2, i / plane % g.o) : 0;
      }
      if (result == kX) {
        ForEachConvProduct(g, [=](int64_t i, int64_t k, int64_t o) { x[i] += w[k] * y[o]; });
      } else if (result == kW) {
        ForEachConvProduct(g, [=](int64_t i, int64_t k, int64_t o) { w[k] += x[i] * y[o]; });
      } else {
        ForEachConvProduct(g, [=](int64_t i, int64_t k, int64_t o) { y[o] += x[i] * w[k]; });
      }
      StoreAll(call, 0, size[result], sum);
    };
  };
}

RefRun MakeConvGradBias(RefNode& node) {
  const ops::Axes axes = {0, 2, 3};
  const IndexMap window = IndexMap::Over(node.in(0), axes);
  const int64_t channels = node.in(0)[1], plane = node.in(0)[2] * node.in(0)[3];
  return [=](const RefCall& call) {
    for (int64_t o = 0; o < channels; ++o) {
      double sum = window.size() > 0 ? -0.0 : 0.0;  // a sum of -0 alone is -0
      for (int64_t i = 0; i < window.size(); ++i) sum += call.Load(0, o * plane + window(i));
      call.Store(0, o, sum);
    }
  };
}

}  // namespace

void Register_reference_conv2d(KernelRegistry& r) {
  AddReference(r, "conv2d", ir::kFloats, MakeConvSum(kX, kW, kY));
  AddReference(r, "conv2d_grad_input", ir::kFloats, MakeConvSum(kY, kW, kX));
  AddReference(r, "conv2d_grad_weight", ir::kFloats, MakeConvSum(kX, kY, kW));
  AddReference(r, "conv2d_grad_bias", ir::kFloats, MakeConvGradBias);
}

}  // namespace halftone::kernels
