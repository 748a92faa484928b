#include "halftone/graph/onnx/rules/windows.h"

#include <algorithm>

namespace halftone::onnx {
namespace {

// Small enough for sums and products of a few; far above any real window.
constexpr int64_t kMostOfWindow = int64_t{1} << 24;

bool Plausible(const Ints& values, size_t count, int64_t least) {
  return values.size() == count && std::all_of(values.begin(), values.end(), [&](int64_t v) {
           return v >= least && v <= kMostOfWindow;
         });
}

}  // namespace

void Windows::AddHeight() {
  for (Ints* list : {&kernel, &strides, &dilations}) list->insert(list->begin(), 1);
  for (Ints* list : {&begin, &end}) list->insert(list->begin(), 0);
}

Windows WindowsOf(NodeImport& n, const Ints& kernel) {
  const Ints x = n.shape(0);
  const size_t dims = x.size() < 3 ? 0 : x.size() - 2;
  Windows w;
  w.kernel = n.IntList("kernel_shape", kernel);
  w.strides = n.IntList("strides", Ints(dims, 1));
  w.dilations = n.IntList("dilations", Ints(dims, 1));
  const Ints pads = n.IntList("pads", Ints(2 * dims, 0));
  const std::string automatic = n.String("auto_pad", "NOTSET");
  const bool good = n.ok() && dims > 0 && Plausible(w.kernel, dims, 1) &&
                    Plausible(w.strides, dims, 1) && Plausible(w.dilations, dims, 1) &&
                    Plausible(pads, 2 * dims, 0);
  if (!good) {
    n.Fail("kernel, strides, dilations and pads do not fit ", dims,
           " spatial axes, or are negative or too large");
    return {Ints(dims, 1), Ints(dims, 1), Ints(dims, 1), Ints(dims, 0), Ints(dims, 0)};
  }
  const auto middle = pads.begin() + static_cast<int64_t>(dims);
  w.begin = Ints(pads.begin(), middle);
  w.end = Ints(middle, pads.end());
  if (automatic == "NOTSET") return w;
  w.begin = w.end = Ints(dims, 0);
  if (automatic == "VALID") return w;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") {
    n.Fail("auto_pad ", automatic, " is not covered");
  }
  // As many outputs as strides fit into the input.
  for (size_t i = 0; i < dims; ++i) {
    const int64_t extent = x[i + 2], outputs = (extent + w.strides[i] - 1) / w.strides[i];
    const int64_t total = std::max<int64_t>((outputs - 1) * w.strides[i] + w.Span(i) - extent, 0);
    w.begin[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.end[i] = total - w.begin[i];
  }
  return w;
}

Expr PadWindows(Expr x, const Windows& windows, double value) {
  Ints before = {0, 0}, after = {0, 0};
  before.insert(before.end(), windows.begin.begin(), windows.begin.end());
  after.insert(after.end(), windows.end.begin(), windows.end.end());
  return Pad(x, before, after, value);
}

}  // namespace halftone::onnx
