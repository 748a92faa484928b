#include "halftone/passes/layout/storage_alias.h"

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {

using ir::Layout;

bool IsSameOrder(const Shape& shape, Layout a, Layout b) {
  if (a == b) return true;
  if (shape.dim(2) * shape.dim(3) == 1) return true;
  const bool in_blocks = a == Layout::kChannelBlocks || b == Layout::kChannelBlocks;
  const bool last = a == Layout::kChannelsLast || b == Layout::kChannelsLast;
  return in_blocks ? last && shape.dim(1) == ir::kChannelBlock : shape.dim(1) == 1;
}

namespace {

// Whether the axes keep their strides, those of one element apart, which have none.
bool KeepsStorageOrder(const ir::Node& transpose) {
  const auto from = ir::StridesOf(transpose.input_type(0));
  const auto to = ir::StridesOf(transpose.output_type());
  const std::vector<int64_t>& perm = transpose.attrs().GetInts("perm");
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    const bool has_stride = transpose.output_type().shape[static_cast<int>(axis)] > 1;
    if (has_stride && to[axis] != from[static_cast<size_t>(perm[axis])]) return false;
  }
  return true;
}

}  // namespace

bool IsStorageAlias(const ir::Node& node) {
  if (IsOp(node, "reshape") || IsOp(node, "detach")) return true;
  if (IsOp(node, "transpose")) return KeepsStorageOrder(node);
  return IsOp(node, "relayout") && IsSameOrder(node.output_type().shape, node.input_type(0).layout,
                                               node.output_type().layout);
}

}  // namespace halftone::passes
