#include "halftone/graph/ir/model.h"

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {

Model::Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

absl::Status CheckValues(const Model& model) {
  for (const Variable& variable : model.graph->variables()) {
    const auto value = model.variables.find(variable.name);
    if (value == model.variables.end()) {
      return NotFound("variable ", Quote(variable.name), " has no value; expected one");
    }
    const Tensor& tensor = value->second;
    if (!tensor.defined() || tensor.dtype() != variable.type.dtype ||
        tensor.shape() != variable.type.shape) {
      return InvalidArgument("variable ", Quote(variable.name), " has the value ",
                             tensor.defined() ? tensor.TypeString() : "of an undefined tensor",
                             "; expected ", variable.type);
    }
  }
  for (const auto& [name, value] : model.variables) {
    if (model.graph->FindVariable(name) == nullptr) {
      return InvalidArgument("value ", Quote(name), ": graph @", model.graph->name(),
                             " has no such variable");
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::ir
