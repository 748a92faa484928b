// CompiledStep: one step of a graph, compiled for a signature, a configuration and modes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/runtime/executable.h"

namespace halftone::nn {

struct CompiledStep {
  std::vector<ir::ValueType> inputs;
  StepConfig config;
  bool training = true;
  size_t modes = 0;          // of the modules, see ModuleModes::Read
  std::string modes_remark;  // the same for people; empty where all train
  std::unique_ptr<ir::Graph> traced;
  std::unique_ptr<runtime::Executable> executable;
  size_t num_outputs = 0;        // of build(); the rest goes to StepResults
  bool dropped_another = false;  // until its first run
  std::string dump_dir;          // where the first run writes what it starts from; empty: nowhere
  // Argument tables of Executable::Run; those of hidden outputs are filled once.
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<Buffer*> buffers;  // of `out`; null for hidden outputs

  // The tensors that the next run reads and writes. The latter must outlive its Start.
  void SetInputs(absl::Span<const Tensor> tensors);
  void SetOutputs(absl::Span<const Tensor> tensors);
};

// For people: large constants are named, not printed.
std::string TextOf(const ir::Graph& graph, bool scopes = false);

}  // namespace halftone::nn
