#include "halftone/graph/nn/graph_dump.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "halftone/core/io/npy.h"
#include "halftone/graph/runtime/checkpoint.h"

namespace halftone::nn {

std::string DumpDir(const StepConfig& config) {
  if (!config.dump_dir.empty()) return config.dump_dir;
  const char* from_environment = std::getenv("HALFTONE_DUMP");
  return from_environment == nullptr ? "" : from_environment;
}

std::string NextDumpName(const std::string& dir, const std::string& graph) {
  static std::mutex mutex;
  static auto* const numbers = new std::map<std::string, int>();
  const std::lock_guard<std::mutex> lock(mutex);
  return Concat(graph, "_", (*numbers)[Concat(dir, "/", graph)]++);
}

absl::Status DumpStart(const CompiledStep& step, const runtime::StateDict& variables) {
  runtime::Checkpoint checkpoint;
  checkpoint.tensors = variables;
  HT_RETURN_IF_ERROR(runtime::WriteCheckpoint(step.dump_dir + "/variables.ckpt", checkpoint));

  if (step.is_update) return absl::OkStatus();  // inputs of `traced` are not the update's
  const std::vector<ir::Node*> inputs = step.traced->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::ValueType& type = inputs[i]->output_type();  // of a micro-batch
    const Tensor value = Tensor::Empty(type.dtype, type.shape);
    if (value.num_bytes() != 0) std::memcpy(value.raw(), step.in[i], value.num_bytes());
    const std::string& name = inputs[i]->attrs().GetString("name");
    HT_RETURN_IF_ERROR(io::WriteNpy(Concat(step.dump_dir, "/", name, ".npy"), value));
  }
  return absl::OkStatus();
}

}  // namespace halftone::nn
