#include "halftone/kernels/reduce_plan.h"

#include <algorithm>

#include "halftone/core/check.h"
#include "halftone/graph/ops/support/nn.h"

namespace halftone::kernels {
namespace {

struct PlanAxis {
  int64_t extent, stride;
  bool reduced;
};

// Axes with an extent over 1 in the order of the shape; channels in blocks are two.
std::vector<PlanAxis> AxesInOrder(const ir::ValueType& x, const std::vector<bool>& is_reduced) {
  const ir::StridedAxes of_x = ir::StridedAxesOf(x);
  std::vector<PlanAxis> axes;
  for (size_t i = 0; i < of_x.extents.size(); ++i) {
    const bool second_of_channels = x.layout == ir::Layout::kChannelBlocks && i >= 2;
    const bool reduced = is_reduced[second_of_channels ? i - 1 : i];
    if (of_x.extents[i] != 1) axes.push_back({of_x.extents[i], of_x.strides[i], reduced});
  }
  return axes;
}

// The same, outermost in memory first, neighbours of a kind merged.
std::vector<PlanAxis> MergedAxes(const ir::ValueType& x, const std::vector<bool>& is_reduced) {
  std::vector<PlanAxis> axes = AxesInOrder(x, is_reduced);
  std::stable_sort(axes.begin(), axes.end(),
                   [](const PlanAxis& a, const PlanAxis& b) { return a.stride > b.stride; });
  std::vector<PlanAxis> merged;
  for (const PlanAxis& axis : axes) {
    if (!merged.empty() && merged.back().reduced == axis.reduced) {
      merged.back() = {merged.back().extent * axis.extent, axis.stride, axis.reduced};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

}  // namespace

ReducePlan::ReducePlan(const ir::ValueType& x, const std::vector<bool>& is_reduced) {
  HT_CHECK(x.num_elements() > 0, "an empty tensor has no strides to order");
  std::vector<PlanAxis> axes = MergedAxes(x, is_reduced);
  if (!axes.empty() && !axes.back().reduced) {
    width = axes.back().extent;
    axes.pop_back();
  }
  if (!axes.empty() && axes.back().reduced) {
    rows = axes.back().extent;
    axes.pop_back();
  }
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    (axis->reduced ? reduced_axes_ : kept_axes_).push_back({axis->extent, axis->stride});
    (axis->reduced ? reduced : kept) *= axis->extent;
  }
}

bool ReducePlan::WritesInOrder(const ir::ValueType& x, const std::vector<bool>& is_reduced,
                               const ir::ValueType& y) {
  if (x.layout == y.layout) return true;
  const std::vector<PlanAxis> axes = AxesInOrder(x, is_reduced);
  int64_t last = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->reduced) continue;
    if (axis->stride < last) return false;
    last = axis->stride;
  }
  return y.layout == ir::Layout::kPlain;
}

std::vector<bool> ReducedAxesOf(const ir::Node& node) {
  const Shape& x = node.input_type(0).shape;
  ops::Axes axes;
  if (node.op().name == "sum_to_shape") {
    axes = ops::BroadcastAxes(node.output_type().shape, x);
  } else if (node.attrs().Has("axes")) {
    axes = ops::CheckedAxes(node.attrs().GetInts("axes"), x.rank());
  } else {  // the gradient of a convolution's bias
    axes = ops::CheckedAxes(ops::AxesBut(x.rank(), 1), x.rank());
  }
  std::vector<bool> is_reduced(x.rank(), false);
  for (int axis : axes) is_reduced[axis] = true;
  return is_reduced;
}

absl::Status ReducesInOrder(const ir::Node& node) {
  if (!ReducePlan::WritesInOrder(node.input_type(0), ReducedAxesOf(node), node.output_type())) {
    return Unimplemented("the layout of the result orders the kept axes otherwise");
  }
  return absl::OkStatus();
}

}  // namespace halftone::kernels
