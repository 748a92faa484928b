#include "halftone/kernels/supports.h"

#include "halftone/graph/ops/support/record.h"

namespace halftone::kernels {

absl::Status PlainInputs(const ir::Node& node) {
  for (const ir::Value& v : node.inputs()) {
    if (v.type().layout != ir::Layout::kPlain) return Unimplemented("needs plain layout");
  }
  return absl::OkStatus();
}

absl::Status PlainThroughout(const ir::Node& node) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (node.output_type(i).layout != ir::Layout::kPlain)
      return Unimplemented("needs plain layout");
  }
  return absl::OkStatus();
}

absl::Status NoChannelBlocks(const ir::Node& node) {
  const auto check = [](const ir::ValueType& type) {
    return type.layout == ir::Layout::kChannelBlocks
               ? Unimplemented("no channels in blocks on this device")
               : absl::OkStatus();
  };
  for (const ir::Value& v : node.inputs()) HT_RETURN_IF_ERROR(check(v.type()));
  for (int i = 0; i < node.num_outputs(); ++i) HT_RETURN_IF_ERROR(check(node.output_type(i)));
  return absl::OkStatus();
}

absl::Status LayoutOfInput(const ir::Node& node) {
  if (node.input_type(0).layout != node.output_type().layout) {
    return Unimplemented("layouts differ");
  }
  return absl::OkStatus();
}

absl::Status OneLayout(const ir::Node& node) {
  const ir::Layout layout = node.output_type().layout;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).layout != layout) return Unimplemented("layouts differ");
  }
  for (int i = 1; i < node.num_outputs(); ++i) {
    if (node.output_type(i).layout != layout) return Unimplemented("layouts differ");
  }
  return absl::OkStatus();
}

absl::Status NotWidened(const ir::Node& node) {
  if (!IsLow(node.input_type(0).dtype) || !ops::IsWidened(node)) return absl::OkStatus();
  return Unimplemented("the graph widens the operands");
}

}  // namespace halftone::kernels
