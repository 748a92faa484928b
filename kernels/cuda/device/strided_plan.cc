#include "halftone/kernels/cuda/device/strided_plan.h"

#include <algorithm>

namespace halftone::cuda {
namespace {

bool CanMerge(const StridedAxis& outer, const StridedAxis& inner) {
  for (int k = 0; k < kMaxOperands; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

}  // namespace

std::vector<StridedAxis> CollapseAxes(const std::vector<StridedAxis>& axes) {
  std::vector<StridedAxis> kept;
  for (const StridedAxis& axis : axes) {
    if (axis.extent != 1) kept.push_back(axis);
  }
  std::stable_sort(kept.begin(), kept.end(), [](const StridedAxis& a, const StridedAxis& b) {
    return a.strides[0] > b.strides[0];
  });
  std::vector<StridedAxis> merged;
  for (const StridedAxis& axis : kept) {
    if (!merged.empty() && CanMerge(merged.back(), axis)) {
      merged.back() = {merged.back().extent * axis.extent, axis.strides};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, {1, 1, 1, 1}});
  return merged;
}

std::vector<StridedAxis> BroadcastAxes(const ir::ValueType& result,
                                       absl::Span<const ir::ValueType> operands) {
  const int rank = result.shape.rank();
  const auto result_strides = ir::StridesOf(result);
  std::vector<StridedAxis> axes;
  for (int i = 0; i < rank; ++i) {
    StridedAxis axis{result.shape[i], {result_strides[i]}};
    for (size_t k = 0; k < operands.size(); ++k) {
      const int own = i - (rank - operands[k].shape.rank());
      if (own >= 0 && operands[k].shape[own] != 1) {
        axis.strides[k + 1] = ir::StridesOf(operands[k])[own];
      }
    }
    axes.push_back(axis);
  }
  return CollapseAxes(axes);
}

Divisor MakeDivisor(int64_t divisor) {
  Divisor d;
  d.divisor = static_cast<uint32_t>(divisor);
  while ((int64_t{1} << d.shift) < divisor) ++d.shift;
  d.factor = static_cast<uint32_t>((uint64_t{1} << 32) *
                                       ((uint64_t{1} << d.shift) - static_cast<uint64_t>(divisor)) /
                                       static_cast<uint64_t>(divisor) +
                                   1);
  return d;
}

}  // namespace halftone::cuda
