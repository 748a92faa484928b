#include "halftone/kernels/cpu/support/strided_loop.h"

#include <algorithm>

#include "halftone/core/check.h"

namespace halftone::kernels {
namespace {

struct Axis {
  int64_t extent;
  int64_t result_stride;
  StridedLoop::Offsets strides;
};

// An operand's strides along the axes of the result, of which channels in blocks are two; 0 where it
// is broadcast. One that lies in blocks itself has the result's shape (graph/ir/verify.cc).
absl::InlinedVector<int64_t, 4> StridesWithin(const ir::ValueType& operand,
                                              const ir::ValueType& result) {
  if (operand.layout == ir::Layout::kChannelBlocks) {
    HT_CHECK(operand.shape == result.shape && operand.layout == result.layout,
             "channels in blocks are not broadcast");
    return ir::BlockAxesOf(operand).strides;
  }
  const auto own = ir::StridesOf(operand);
  const int rank = result.shape.rank(), lead = rank - operand.shape.rank();
  absl::InlinedVector<int64_t, 4> strides;
  for (int i = 0; i < rank; ++i) {
    const bool repeats = i < lead || operand.shape[i - lead] == 1;
    const int64_t stride = repeats ? 0 : own[i - lead];
    if (i == 1 && result.layout == ir::Layout::kChannelBlocks) {
      strides.push_back(stride * ir::kChannelBlock);
    }
    strides.push_back(stride);
  }
  return strides;
}

// Axes of the result with an extent over 1, outermost in memory first.
std::vector<Axis> AxesOf(const ir::ValueType& result, const std::vector<ir::ValueType>& operands) {
  const ir::StridedAxes of_result = ir::StridedAxesOf(result);
  std::vector<Axis> axes;
  for (size_t i = 0; i < of_result.extents.size(); ++i) {
    axes.push_back({of_result.extents[i], of_result.strides[i], {}});
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    const auto strides = StridesWithin(operands[k], result);
    for (size_t i = 0; i < axes.size(); ++i) axes[i].strides[k] = strides[i];
  }
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis& a) { return a.extent == 1; }),
             axes.end());
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
