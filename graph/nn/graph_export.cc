// A graph as a model.
#include <utility>

#include "halftone/graph/nn/compiled_step.h"
#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/onnx/onnx.h"

namespace halftone::nn {

absl::StatusOr<ir::Model> Graph::inference_model(absl::Span<const Tensor> in) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const auto describe = [this](const Values& values) { return build(values); };
  const bool training = std::exchange(impl_->training, false);
  const auto step = impl_->Prepare(config, describe, in);
  impl_->training = training;
  HT_RETURN_IF_ERROR(step.status());
  HT_ASSIGN_OR_RETURN(const StateDict state, impl_->state.Save(config.seed));
  ir::Model model;
  model.graph = (*step)->traced->Clone();
  for (const ir::Variable& variable : model.graph->variables()) {
    model.variables[variable.name] = state.at(variable.name);
  }
  return model;
}

absl::Status Graph::export_onnx(const std::string& path, absl::Span<const Tensor> in) {
  HT_ASSIGN_OR_RETURN(const ir::Model model, inference_model(in));
  return onnx::WriteOnnx(path, *model.graph, model.variables);
}

}  // namespace halftone::nn
