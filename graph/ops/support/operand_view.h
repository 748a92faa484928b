// Operands that an op reads where they lie in a larger value, with strides: a slice of a packed
// projection, or a transpose, without a copy of it.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ops/support/infer.h"

namespace halftone::ops {

// Element (i, j, ...) of the operand is element offset + i strides[0] + j strides[1] + ... of the value
// that holds it, both counted from 0.
struct OperandView {
  Shape shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

// The whole of a value, row by row.
OperandView DenseView(const Shape& shape);

// As an attribute: extents, strides, offset. Empty: the whole operand.
std::vector<int64_t> ToAttribute(const OperandView& view);
// Of the operand `port`, whose view attribute `name` is. Errors: InvalidArgument: not as many numbers;
// extents or strides below 0; a last stride other than 1, which kernels load by vectors; an element
// that the operand does not have.
absl::StatusOr<OperandView> InferView(const ir::InferContext& ctx, int port,
                                      const std::string& name);
// The same of what inference has accepted.
OperandView ViewOf(const ir::Attributes& attrs, const std::string& name, const Shape& operand);

// The attribute of an op that reads input `input` so: "query_view".
ir::AttrSpec ViewAttr(const std::string& input);

}  // namespace halftone::ops
