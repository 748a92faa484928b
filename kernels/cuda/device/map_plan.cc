#include "halftone/kernels/cuda/device/map_plan.h"

namespace halftone::cuda {
namespace {

bool Fits(const std::vector<StridedAxis>& axes, int operands, int width) {
  const StridedAxis& inner = axes.back();
  if (axes.size() > 1 && inner.extent % width != 0) return false;
  for (int k = 1; k <= operands; ++k) {
    if (inner.strides[k] > 1) return false;
    if (inner.strides[k] == 0) continue;
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      if (axes[i].strides[k] % width != 0) return false;
    }
  }
  return true;
}

}  // namespace

int AccessWidth(const std::vector<StridedAxis>& axes, int operands, size_t largest_element) {
  for (int width : {8, 4}) {
    if (width * largest_element <= 16 && Fits(axes, operands, width)) return width;
  }
  return 1;
}

}  // namespace halftone::cuda
