#include "halftone/graph/nn/compiled_step.h"

#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/rewrite/fuse.h"

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

absl::StatusOr<std::unique_ptr<ir::Graph>> CompiledStep::Unfused(const Device& device) const {
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(device));
  std::unique_ptr<ir::Graph> graph = traced->Clone();
  passes::ForbidFusion(*graph);
  HT_RETURN_IF_ERROR(runtime::Lower(*graph, *target, {}, nullptr, config.own_passes()));
  return graph;
}

passes::AmpReport ReportAmp(const CompiledStep& step, const Device& device) {
  const auto unfused = step.Unfused(device);
  // What was lowered once is lowered again.
  return passes::MakeAmpReport(unfused.ok() ? **unfused : step.executable->graph());
}

std::string TextOf(const ir::Graph& graph, bool scopes) {
  ir::TextOptions options;
  options.scopes = scopes;
  options.constant_files = true;
  return ir::Print(graph, options);
}

}  // namespace halftone::nn
