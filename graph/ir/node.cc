#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

std::string Value::ToString() const {
  if (!valid()) return "poison";
  std::string text = "%" + node->name();
  if (index > 0) text += "#" + std::to_string(index);
  return text;
}

std::string SourceLocation::ToString() const {
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

std::string Node::path() const { return scope_.empty() ? name_ : scope_ + "/" + name_; }

std::string Node::Label() const { return op_->name + "(%" + name_ + ")"; }

Cost CostOf(const Node& node) {
  if (node.op().cost) return node.op().cost(node);
  Cost cost;
  if (node.num_outputs() == 0) return cost;
  cost.flops = static_cast<double>(node.output_type(0).num_elements());
  for (const Value& input : node.inputs()) cost.bytes += input.type().num_bytes();
  for (int i = 0; i < node.num_outputs(); ++i) cost.bytes += node.output_type(i).num_bytes();
  return cost;
}

}  // namespace halftone::ir
