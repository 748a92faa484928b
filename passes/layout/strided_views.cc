#include "halftone/passes/layout/strided_views.h"

#include <vector>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ops::OperandView;
using Ints = std::vector<int64_t>;

bool IsMove(const ir::Node& node) {
  const bool moves = IsOp(node, "slice") || IsOp(node, "transpose") || IsOp(node, "reshape");
  return moves && node.input_type(0).layout == ir::Layout::kPlain &&
         node.output_type().layout == ir::Layout::kPlain;
}

std::optional<OperandView> Transposed(const OperandView& x, const ir::Node& node) {
  OperandView y{node.output_type().shape, {}, x.offset};
  for (const int64_t axis : node.attrs().GetInts("perm")) {
    y.strides.push_back(x.strides[static_cast<size_t>(axis)]);
  }
  return y;
}

std::optional<OperandView> Sliced(const OperandView& x, const ir::Node& node) {
  const Ints &starts = node.attrs().GetInts("starts"), &steps = node.attrs().GetInts("strides");
  OperandView y{node.output_type().shape, x.strides, x.offset};
  for (size_t axis = 0; axis < steps.size(); ++axis) {
    y.offset += starts[axis] * x.strides[axis];
    y.strides[axis] *= steps[axis];
  }
  return y;
}

// Axes of x that are one in memory go together, and are split as the result has them.
std::optional<OperandView> Reshaped(const OperandView& x, const ir::Node& node) {
  const Shape& shape = node.output_type().shape;
  if (shape.num_elements() == 0) return std::nullopt;
  struct Axis {
    int64_t extent, stride;
  };
  std::vector<Axis> runs;  // outermost first, of extents above 1
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const int64_t extent = x.shape[axis], stride = x.strides[static_cast<size_t>(axis)];
    if (extent == 1) continue;
    if (!runs.empty() && runs.back().stride == extent * stride) {
      runs.back() = {runs.back().extent * extent, stride};
    } else {
      runs.push_back({extent, stride});
    }
  }
  OperandView y{shape, Ints(static_cast<size_t>(shape.rank()), 1), x.offset};
  int64_t left = 1;  // of the run that is being split
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = shape[axis];
    if (extent == 1) continue;
    if (left == 1) {
      if (runs.empty()) return std::nullopt;
      left = runs.back().extent;
    }
    if (left % extent != 0) return std::nullopt;
    y.strides[static_cast<size_t>(axis)] = runs.back().stride;
    runs.back().stride *= extent;
    left /= extent;
    if (left == 1) runs.pop_back();
  }
  return y;
}

std::optional<OperandView> Moved(const OperandView& x, const ir::Node& node) {
  if (IsOp(node, "transpose")) return Transposed(x, node);
  return IsOp(node, "slice") ? Sliced(x, node) : Reshaped(x, node);
}

}  // namespace

ViewedValue ViewedFrom(ir::Value v) {
  std::vector<const ir::Node*> moves;  // the last one first
  for (ir::Value at = v; IsMove(*at.node); at = at.node->input(0)) moves.push_back(at.node);
  for (size_t first = moves.size(); first > 0; --first) {
    const ir::Value base = moves[first - 1]->input(0);
    std::optional<OperandView> view = ops::DenseView(base.shape());
    for (size_t i = first; i > 0 && view.has_value(); --i) view = Moved(*view, *moves[i - 1]);
    if (view.has_value()) return {base, *view};
  }
  return {v, ops::DenseView(v.shape())};
}

}  // namespace halftone::passes
