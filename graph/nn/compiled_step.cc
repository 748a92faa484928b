#include "halftone/graph/nn/compiled_step.h"

#include "halftone/graph/ir/text.h"

namespace halftone::nn {

void CompiledStep::SetInputs(absl::Span<const Tensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) in[i] = tensors[i].raw();
}

void CompiledStep::SetOutputs(absl::Span<const Tensor> tensors) {
  const bool later = executable->writes_outputs_later();
  for (size_t i = 0; i < tensors.size(); ++i) {
    out[i] = later ? tensors[i].address() : tensors[i].raw();
    buffers[i] = tensors[i].buffer().get();
  }
}

void CompiledStep::NextMicroBatch() {
  if (micro_batches == 1) return;
  for (size_t i = 0; i < in.size(); ++i) {
    if (inputs[i].shape.rank() == 0) continue;  // whole in each
    in[i] = static_cast<const char*>(in[i]) + inputs[i].num_bytes() / micro_batches;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out[i] = static_cast<char*>(out[i]) + outputs[i].num_bytes() / micro_batches;
  }
}

std::string TextOf(const ir::Graph& graph, bool scopes) {
  ir::TextOptions options;
  options.scopes = scopes;
  options.constant_files = true;
  return ir::Print(graph, options);
}

}  // namespace halftone::nn
