// conv2d, conv3d and their gradients: direct sums over the window.
#include <algorithm>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

using ops::ConvGeometry;

// Calls visit(x element, w element, y element) for every product that a convolution sums.
template <typename Visit>
void ForEachConvProduct(const ConvGeometry& g, const Visit& visit) {
  const int64_t c_group = g.c / g.groups, o_group = g.o / g.groups;
  const int64_t image = g.d.input * g.h.input * g.w.input;
  const int64_t window = g.d.kernel * g.h.kernel * g.w.kernel;
  // Those of one output position, of one channel of x and w, which begin at these elements.
  const auto at = [&](int64_t z, int64_t i, int64_t j, int64_t x, int64_t w, int64_t y) {
    for (int64_t a = 0; a < g.d.kernel; ++a) {
      const int64_t depth = g.d.Position(z, a);
      if (depth < 0 || depth >= g.d.input) continue;
      for (int64_t k = 0; k < g.h.kernel; ++k) {
        const int64_t row = g.h.Position(i, k);
        if (row < 0 || row >= g.h.input) continue;
        for (int64_t l = 0; l < g.w.kernel; ++l) {
          const int64_t column = g.w.Position(j, l);
          if (column < 0 || column >= g.w.input) continue;
          visit(x + (depth * g.h.input + row) * g.w.input + column,
                w + (a * g.h.kernel + k) * g.w.kernel + l, y);
        }
      }
    }
  };
  int64_t y = 0;
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t o = 0; o < g.o; ++o) {
      for (int64_t z = 0; z < g.d.output; ++z) {
        for (int64_t i = 0; i < g.h.output; ++i) {
          for (int64_t j = 0; j < g.w.output; ++j, ++y) {
            for (int64_t c = 0; c < c_group; ++c) {
              at(z, i, j, (n * g.c + o / o_group * c_group + c) * image, (o * c_group + c) * window,
                 y);
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
    const int64_t plane = g.d.output * g.h.output * g.w.output;
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
  const Shape& dy = node.in(0);
  const IndexMap window =
      IndexMap::Over(dy, ops::CheckedAxes(ops::AxesBut(dy.rank(), 1), dy.rank()));
  const int64_t channels = dy[1];
  int64_t plane = 1;
  for (const int64_t extent : dy.dims().subspan(2)) plane *= extent;
  return [=](const RefCall& call) {
    for (int64_t o = 0; o < channels; ++o) {
      double sum = window.size() > 0 ? -0.0 : 0.0;  // a sum of -0 alone is -0
      for (int64_t i = 0; i < window.size(); ++i) sum += call.Load(0, o * plane + window(i));
      call.Store(0, o, sum);
    }
  };
}

}  // namespace

void Register_reference_conv(KernelRegistry& r) {
  for (const int dims : ops::kConvDims) {
    const auto add = [&](const char* suffix, RefMaker make) {
      AddReference(r, ops::ConvOp(dims, suffix), ir::kFloats, std::move(make));
    };
    add("", MakeConvSum(kX, kW, kY));
    add("_grad_input", MakeConvSum(kY, kW, kX));
    add("_grad_weight", MakeConvSum(kX, kY, kW));
    add("_grad_bias", MakeConvGradBias);
  }
}

}  // namespace halftone::kernels
