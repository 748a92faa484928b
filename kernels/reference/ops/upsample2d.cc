// upsample2d and its gradient, pixel by pixel.
#include "halftone/kernels/reference/support/nn.h"
#include "halftone/kernels/resampled_axis.h"

namespace halftone::kernels {
namespace {

// Calls visit(pixel of y, pixel of x, weight) for the four that a pixel is made of.
template <typename Visit>
void ForTaps(const ops::ResampledAxis& h, const ops::ResampledAxis& w, int64_t planes,
             const Visit& visit) {
  for (int64_t i = 0; i < planes * h.output * w.output; ++i) {
    const int64_t plane = i / (h.output * w.output), row = i / w.output % h.output;
    const ops::Tap y = h.at(row, h.step()), x = w.at(i % w.output, w.step());
    const auto at = [&](int64_t r, int64_t c) { return (plane * h.input + r) * w.input + c; };
    visit(i, at(y.low, x.low), (1 - y.weight) * (1 - x.weight));
    visit(i, at(y.low, x.high), (1 - y.weight) * x.weight);
    visit(i, at(y.high, x.low), y.weight * (1 - x.weight));
    visit(i, at(y.high, x.high), y.weight * x.weight);
  }
}

RefRun MakeUpsample(RefNode& node) {
  const Shape image = node.in(0);
  const auto h = ResampledAxisOf(node.attrs, image, 0), w = ResampledAxisOf(node.attrs, image, 1);
  const int64_t planes = image[0] * image[1];
  return [=](const RefCall& call) {
    double sum = 0;
    int taps = 0;
    ForTaps(h, w, planes, [&](int64_t i, int64_t from, double weight) {
      // What a weight of 0 leaves out may be infinite.
      if (weight != 0) sum += weight * call.Load(0, from);
      if (++taps % 4 != 0) return;
      call.Store(0, i, sum);
      sum = 0;
    });
  };
}

RefRun MakeUpsampleGrad(RefNode& node) {
  const Shape image = node.out(0);
  const auto h = ResampledAxisOf(node.attrs, image, 0), w = ResampledAxisOf(node.attrs, image, 1);
  const int64_t planes = image[0] * image[1], size = image.num_elements();
  node.workspace_bytes = static_cast<size_t>(size) * sizeof(double);
  return [=](const RefCall& call) {
    double* sums = call.workspace<double>();
    for (int64_t i = 0; i < size; ++i) sums[i] = 0;
    ForTaps(h, w, planes, [&](int64_t i, int64_t to, double weight) {
      if (weight != 0) sums[to] += weight * call.Load(0, i);
    });
    StoreAll(call, 0, size, sums);
  };
}

}  // namespace

void Register_reference_upsample2d(KernelRegistry& r) {
  AddReference(r, "upsample2d", ir::kFloats, MakeUpsample);
  AddReference(r, "upsample2d_grad", ir::kFloats, MakeUpsampleGrad);
}

}  // namespace halftone::kernels
