#include "halftone/tools/support/node_look.h"

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::tools {

NodeKind KindOf(const ir::Node& node) {
  if (passes::IsOp(node, "cast")) return NodeKind::kCast;
  if (node.num_outputs() == 0) return NodeKind::kOther;
  const DType result = node.output_type().dtype;
  if (IsLow(result) || (node.num_inputs() > 0 && IsLow(node.input_type(0).dtype))) {
    return NodeKind::kLow;
  }
  return result == DType::kF32 ? NodeKind::kF32 : NodeKind::kOther;
}

bool IsState(const ir::Node& node) {
  return passes::IsSource(node) || passes::IsOp(node, "commit");
}

std::string StateName(const ir::Node& node) {
  if (!IsState(node)) return "";
  const ir::AttrValue* value =
      node.attrs().Find(passes::IsOp(node, "commit") ? "variable" : "name");
  const auto* name = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return name == nullptr ? "" : *name;
}

}  // namespace halftone::tools
