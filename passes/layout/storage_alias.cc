#include "halftone/passes/layout/storage_alias.h"

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {

bool IsSameOrderInBothLayouts(const Shape& shape) {
  return shape.rank() == 4 && (shape.dim(1) == 1 || shape.dim(2) * shape.dim(3) == 1);
}

bool IsStorageAlias(const ir::Node& node) {
  if (IsOp(node, "reshape") || IsOp(node, "detach")) return true;
  return IsOp(node, "relayout") && (node.input_type(0) == node.output_type() ||
                                    IsSameOrderInBothLayouts(node.output_type().shape));
}

}  // namespace halftone::passes
