#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

UseMap::UseMap(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (int port = 0; port < node->num_inputs(); ++port) {
      const Value v = node->input(port);
      if (v.valid()) uses_[{v.node->id(), v.index}].push_back({node.get(), port});
    }
  }
  for (const Output& output : graph.outputs()) {
    if (output.value.valid()) outputs_.insert({output.value.node->id(), output.value.index});
  }
}

const std::vector<UseMap::Use>& UseMap::uses(Value v) const {
  static const std::vector<Use>* const none = new std::vector<Use>;
  if (!v.valid()) return *none;
  auto it = uses_.find({v.node->id(), v.index});
  return it == uses_.end() ? *none : it->second;
}

bool UseMap::is_output(Value v) const {
  return v.valid() && outputs_.count({v.node->id(), v.index}) != 0;
}

}  // namespace halftone::ir
