#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/passes/rewrite/simplify_rules.h"

namespace halftone::passes {
namespace {

// An op that only moves elements and gives the type it got: reshape, broadcast_to, sum_to_shape.
ir::Value SameType(ir::Node& node) {
  return node.input_type(0) == node.output_type() ? node.input(0) : ir::Value();
}

// Only the last of two reshapes, or of two broadcasts, decides the shape.
ir::Value LastShapeDecides(ir::Node& node) {
  const ir::Node& inner = *node.input(0).node;
  if (&inner.op() != &node.op()) return {};
  node.set_input(0, inner.input(0));
  return node.output();
}

ir::Value IdentityTranspose(ir::Node& node) {
  const std::vector<int64_t>& perm = node.attrs().GetInts("perm");
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return {};
  }
  return node.input(0);
}

ir::Value TransposeOfTranspose(ir::Node& node) {
  const ir::Node& inner = *node.input(0).node;
  if (!IsOp(inner, "transpose")) return {};
  const std::vector<int64_t>& first = inner.attrs().GetInts("perm");
  std::vector<int64_t> perm = node.attrs().GetInts("perm");
  for (int64_t& axis : perm) axis = first[axis];
  node.mutable_attrs().Set("perm", perm);
  node.set_input(0, inner.input(0));
  return node.output();
}

// With the shape unchanged and no negative strides, a slice takes everything.
ir::Value WholeSlice(ir::Node& node) {
  if (node.input_type(0) != node.output_type()) return {};
  for (int64_t stride : node.attrs().GetInts("strides")) {
    if (stride < 1) return {};
  }
  return node.input(0);
}

ir::Value ConcatOfOne(ir::Node& node) {
  return node.num_inputs() == 1 ? node.input(0) : ir::Value();
}

// Whether `node` is a transpose of the two last axes only.
bool IsMatrixTranspose(const ir::Node& node) {
  if (!IsOp(node, "transpose")) return false;
  const std::vector<int64_t>& perm = node.attrs().GetInts("perm");
  const size_t rank = perm.size();
  if (rank < 2 || perm[rank - 1] != static_cast<int64_t>(rank - 2) ||
      perm[rank - 2] != static_cast<int64_t>(rank - 1)) {
    return false;
  }
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// A matmul reads a transposed operand in place.
ir::Value MatmulOfTranspose(ir::Node& node) {
  static constexpr const char* kFlags[] = {"transpose_a", "transpose_b"};
  bool changed = false;
  for (int port : {0, 1}) {
    const ir::Node& inner = *node.input(port).node;
    if (!IsMatrixTranspose(inner)) continue;
    node.set_input(port, inner.input(0));
    node.mutable_attrs().Set(kFlags[port], !node.attrs().GetBool(kFlags[port]));
    changed = true;
  }
  return changed ? node.output() : ir::Value();
}

}  // namespace

const std::vector<SimplifyRule>& ShapeRules() {
  static const auto* const rules = new std::vector<SimplifyRule>{
      {"reshape", "identity_shape", &SameType},
      {"reshape", "last_shape_decides", &LastShapeDecides},
      {"broadcast_to", "identity_shape", &SameType},
      {"broadcast_to", "last_shape_decides", &LastShapeDecides},
      {"sum_to_shape", "identity_shape", &SameType},
      {"transpose", "identity_transpose", &IdentityTranspose},
      {"transpose", "transpose_of_transpose", &TransposeOfTranspose},
      {"slice", "whole_slice", &WholeSlice},
      {"concat", "concat_of_one", &ConcatOfOne},
      {"matmul", "matmul_of_transpose", &MatmulOfTranspose},
  };
  return *rules;
}

}  // namespace halftone::passes
