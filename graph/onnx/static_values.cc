#include "halftone/graph/onnx/static_values.h"

#include <algorithm>

#include "halftone/graph/ir/text_format.h"
#include "halftone/kernels/reference_evaluator.h"

namespace halftone::onnx {

absl::StatusOr<Tensor> StaticValues::Evaluate(ir::Value value) {
  // Operands before their users, by a stack of our own: a chain may be as long as the model.
  std::vector<const ir::Node*> open = {value.node};
  while (!open.empty()) {
    const ir::Node& node = *open.back();
    if (known_.contains(node.id())) {
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    for (const ir::Value& input : node.inputs()) {
      if (!known_.contains(input.node->id())) open.push_back(input.node);
    }
    if (open.size() > before) continue;
    HT_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, EvaluateNode(node));
    known_.emplace(node.id(), std::move(outputs));
    open.pop_back();
  }
  return known_.at(value.node->id())[static_cast<size_t>(value.index)];
}

absl::StatusOr<std::vector<Tensor>> StaticValues::EvaluateNode(const ir::Node& node) {
  const std::string& op = node.op().name;
  if (op == "constant") return std::vector<Tensor>{node.attrs().Get<Tensor>("value")};
  if (op == "variable") {
    return std::vector<Tensor>{variables_.at(node.attrs().GetString("name"))};
  }
  if (op == "input") {
    const std::string& name = node.attrs().GetString("name");
    const auto given = inputs_.find(name);
    if (given == inputs_.end()) {
      return Unimplemented("it depends on input ", ir::Quote(name.substr(0, 80)),
                           ", whose value is not known before the graph runs");
    }
    inputs_used_[name] = true;
    return std::vector<Tensor>{given->second};
  }
  flops_left_ -= ir::CostOf(node).flops;
  bool affordable = flops_left_ >= 0 && !node.op().is_random;
  for (int i = 0; i < node.num_outputs(); ++i) {
    affordable = affordable && Spend(node.output_type(i).num_elements());
  }
  if (!affordable) {
    return Unimplemented("it is ", node.Label(), " of ", node.output_type(),
                         ", which is not computed at import");
  }
  std::vector<Tensor> inputs;
  for (const ir::Value& input : node.inputs()) {
    inputs.push_back(known_.at(input.node->id())[static_cast<size_t>(input.index)]);
  }
  return kernels::ReferenceEvaluator().Evaluate(node, inputs);
}

bool StaticValues::Spend(int64_t elements) {
  if (elements < 0 || elements > std::min(kMaxStaticElements, elements_left_)) return false;
  elements_left_ -= elements;
  return true;
}

}  // namespace halftone::onnx
