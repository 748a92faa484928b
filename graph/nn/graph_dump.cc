// HALFTONE_DUMP: variables and inputs of a step's first run, written beside the text of its graph.
#include <cstring>

#include "halftone/core/io/npy.h"
#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/runtime/checkpoint.h"

namespace halftone::nn {

absl::Status Graph::Impl::DumpState(Graph& graph, const CompiledStep& step) {
  runtime::Checkpoint checkpoint;
  HT_ASSIGN_OR_RETURN(checkpoint.tensors, graph.state_dict());
  if (!step.training) checkpoint.tensors[kRunCount] = CountTensor(evaluation_count);
  HT_RETURN_IF_ERROR(runtime::WriteCheckpoint(step.dump_dir + "/variables.ckpt", checkpoint));

  const std::vector<ir::Node*> inputs = step.traced->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::ValueType& type = step.inputs[i];
    const Tensor value = Tensor::Empty(type.dtype, type.shape);
    if (value.num_bytes() != 0) std::memcpy(value.raw(), step.in[i], value.num_bytes());
    const std::string& name = inputs[i]->attrs().GetString("name");
    HT_RETURN_IF_ERROR(io::WriteNpy(Concat(step.dump_dir, "/", name, ".npy"), value));
  }
  return absl::OkStatus();
}

}  // namespace halftone::nn
