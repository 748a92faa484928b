#include "halftone/kernels/cpu/support/strided_loop.h"

#include <algorithm>

namespace halftone::kernels {
namespace {

struct Axis {
  int64_t extent;
  int64_t result_stride;
  StridedLoop::Offsets strides;
};

// Axes of the result with an extent over 1, outermost in memory first.
std::vector<Axis> AxesOf(const ir::ValueType& result, const std::vector<ir::ValueType>& operands) {
  const int rank = result.shape.rank();
  const auto result_strides = ir::StridesOf(result);
  std::vector<Axis> axes;
  for (int i = 0; i < rank; ++i) {
    if (result.shape[i] == 1) continue;
    Axis axis{result.shape[i], result_strides[i], {}};
    for (size_t k = 0; k < operands.size(); ++k) {
      const int own = i - (rank - operands[k].shape.rank());
      if (own >= 0 && operands[k].shape[own] != 1)
        axis.strides[k] = ir::StridesOf(operands[k])[own];
    }
    axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.result_stride > b.result_stride; });
  return axes;
}

bool CanMerge(const Axis& outer, const Axis& inner) {
  for (int k = 0; k < StridedLoop::kMaxOperands; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

}  // namespace

StridedLoop::StridedLoop(const ir::ValueType& result, const std::vector<ir::ValueType>& operands) {
  std::vector<Axis> merged;
  for (const Axis& axis : AxesOf(result, operands)) {
    if (!merged.empty() && CanMerge(merged.back(), axis)) {
      merged.back() = {merged.back().extent * axis.extent, axis.result_stride, axis.strides};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) return;  // one element
  inner_ = merged.back().extent;
  inner_strides_ = merged.back().strides;
  merged.pop_back();
  for (const Axis& axis : merged) {
    outer_dims_[outer_rank_] = axis.extent;
    outer_strides_[outer_rank_++] = axis.strides;
    rows_ *= axis.extent;
  }
  if (inner_ == 0) rows_ = 0;
}

StridedLoop::Offsets StridedLoop::Seek(int64_t row, std::array<int64_t, kMaxRank>& index) const {
  Offsets offsets{};
  for (int axis = outer_rank_ - 1; axis >= 0; --axis) {
    index[axis] = row % outer_dims_[axis];
    row /= outer_dims_[axis];
    for (int k = 0; k < kMaxOperands; ++k) offsets[k] += index[axis] * outer_strides_[axis][k];
  }
  return offsets;
}

}  // namespace halftone::kernels
