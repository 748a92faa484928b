#include "halftone/passes/layout/axis_factors.h"

#include <algorithm>
#include <iterator>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// The axes of [N,C,H,W] as channels-last storage has them, outermost first.
constexpr int kChannelsLastOrder[] = {0, 2, 3, 1};

std::vector<int> StorageOrder(int rank, ir::Layout layout) {
  if (layout == ir::Layout::kChannelsLast) {
    return {std::begin(kChannelsLastOrder), std::end(kChannelsLastOrder)};
  }
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
  return order;
}

}  // namespace

AxisFactors::AxisFactors(const ir::ValueType& type)
    : axes_(static_cast<size_t>(type.shape.rank())), layout_(type.layout) {
  for (const int axis : StorageOrder(type.shape.rank(), type.layout)) {
    if (type.shape[axis] == 1) continue;
    axes_[static_cast<size_t>(axis)] = {first_.insert(first_.end(), {type.shape[axis]})};
  }
}

bool AxisFactors::Follow(const ir::Node& node) {
  layout_ = node.output_type().layout;
  if (IsOp(node, "relayout")) return true;
  if (IsOp(node, "reshape")) return Reshape(node.output_type().shape);
  if (!IsOp(node, "transpose")) return false;
  std::vector<Run> axes;
  for (const int64_t axis : node.attrs().GetInts("perm")) {
    axes.push_back(axes_[static_cast<size_t>(axis)]);
  }
  axes_ = std::move(axes);
  return true;
}

// Factors go to the new axes in order, outermost first; of one that is too large for its axis the outer
// part does.
bool AxisFactors::Reshape(const Shape& shape) {
  if (shape.num_elements() == 0) return false;
  Run left;
  for (const Run& run : axes_) left.insert(left.end(), run.begin(), run.end());
  std::reverse(left.begin(), left.end());
  axes_.assign(static_cast<size_t>(shape.rank()), {});
  for (int axis = 0; axis < shape.rank(); ++axis) {
    for (int64_t wanted = shape[axis]; wanted > 1;) {
      const Factors::iterator factor = left.back();
      left.pop_back();
      if (factor->extent > wanted) {
        if (factor->extent % wanted != 0) return false;
        left.push_back(first_.insert(std::next(factor), {factor->extent / wanted}));
        factor->extent = wanted;
      }
      if (wanted % factor->extent != 0) return false;
      wanted /= factor->extent;
      axes_[static_cast<size_t>(axis)].push_back(factor);
    }
  }
  return true;
}

AxisFactors::Run AxisFactors::InStorageOrder() const {
  Run run;
  for (const int axis : StorageOrder(static_cast<int>(axes_.size()), layout_)) {
    const Run& of_axis = axes_[static_cast<size_t>(axis)];
    run.insert(run.end(), of_axis.begin(), of_axis.end());
  }
  return run;
}

AxisFactors::Permutation AxisFactors::OfStorage() const {
  // Factors that are neighbours in both orders are one axis.
  std::vector<Run> groups;
  for (const Factors::iterator factor : InStorageOrder()) {
    if (!groups.empty() && std::next(groups.back().back()) == factor) {
      groups.back().push_back(factor);
    } else {
      groups.push_back({factor});
    }
  }
  Permutation result;
  result.perm.resize(groups.size());
  for (auto factor = first_.begin(); factor != first_.end();) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Run& run) {
      return Factors::const_iterator(run.front()) == factor;
    });
    result.perm[static_cast<size_t>(group - groups.begin())] =
        static_cast<int64_t>(result.shape.size());
    int64_t extent = 1;
    for (const Factors::iterator of_group : *group) extent *= of_group->extent;
    result.shape.push_back(extent);
    std::advance(factor, group->size());
  }
  return result;
}

}  // namespace halftone::passes
