// CompiledStep: one step of a graph, compiled for a signature, a configuration and modes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/device.h"
#include "halftone/core/status.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/runtime/executable.h"
#include "halftone/passes/amp/report.h"

namespace halftone::nn {

struct CompiledStep {
  std::vector<ir::ValueType> inputs;   // of a call
  std::vector<ir::ValueType> outputs;  // of a call, as build() gives them; what the executable has
                                       // beyond goes to StepResults
  StepConfig config;
  bool training = true;
  size_t modes = 0;          // of the modules, see ModuleModes::Read
  std::string modes_remark;  // the same for people; empty where all train
  std::unique_ptr<ir::Graph> traced;
  std::unique_ptr<runtime::Executable> executable;
  bool dropped_another = false;  // until its first run
  std::string dump_dir;          // where the first run writes what it starts from; empty: nowhere
  // Argument tables of Executable::Run; those of hidden outputs are filled once.
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<Buffer*> buffers;  // of `out`; null for hidden outputs

  // Of a step that adds gradients to their sums: the parts of a call's batch, and the step that
  // updates the parameters by the sums. Null: this one does, or nothing is to be updated.
  size_t micro_batches = 1;
  std::shared_ptr<CompiledStep> update;
  bool is_update = false;
  std::vector<std::string> sums;  // of an update: their variables

  // The graph that `executable` runs on `device`, but with every op as a node of its own: the same
  // values, each with the name and the reasons it has without `fuse`. Runs the pipeline again. Errors:
  // those of runtime::Lower.
  absl::StatusOr<std::unique_ptr<ir::Graph>> Unfused(const Device& device) const;

  // Micro-batches between two updates.
  uint64_t window() const {
    return micro_batches * static_cast<uint64_t>(config.accumulated_calls());
  }
  // The operands of the next micro-batch of the same call.
  void NextMicroBatch();
  // The tensors that the next run reads and writes. The latter must outlive its Start.
  void SetInputs(absl::Span<const Tensor> tensors);
  void SetOutputs(absl::Span<const Tensor> tensors);
};

// Decisions of mixed precision, of every op as a node of its own.
passes::AmpReport ReportAmp(const CompiledStep& step, const Device& device);

// For people: large constants are named, not printed.
std::string TextOf(const ir::Graph& graph, bool scopes = false);

}  // namespace halftone::nn
