// Executable: the kernels of one compiled graph, called in order. HostExecutable calls them,
// DeviceExecutable puts their work on an accelerator's stream.
//
// Invariants:
//  1. After the first run a run looks nothing up, takes no lock and allocates nothing outside
//     library calls: every argument table is built beforehand.
//  2. A run that faults changes no variable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/graph/runtime/arena.h"
#include "halftone/graph/runtime/variable_store.h"
#include "halftone/kernels/kernel.h"
#include "halftone/passes/memory/memory_plan.h"

namespace halftone::runtime {

class Executable {
 public:
  // Takes a graph after the pipeline: no markers. Variables are looked up in `store`, and made
  // there. Errors: Unimplemented (a node no kernel runs, with each candidate's reason),
  // ResourceExhausted; those of kernels::OpenCuda.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::unique_ptr<ir::Graph> graph,
                                                            const Device& device, uint64_t seed,
                                                            VariableStore& store,
                                                            std::shared_ptr<Arena> arena);
  virtual ~Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Types of the graph's inputs and outputs, in order.
  const std::vector<ir::ValueType>& input_types() const { return input_types_; }
  const std::vector<ir::ValueType>& output_types() const { return output_types_; }

  // One step. Pointers to plain-layout data of the input and output types, in order. Outputs may
  // overlap neither inputs nor each other.
  // Errors: OutOfRange with location, node, value and bound, outputs are then undefined; the
  // device's.
  absl::Status Run(const void* const* inputs, void* const* outputs, uint64_t run_count);

  // The halves of Run. After Start the inputs may change; outputs are written by Finish at the
  // latest, which gives the first error of the steps since the last one. On the host Start is the
  // whole; on an accelerator it waits only for a step several calls back, and the error of an
  // earlier step may be what it returns (the new step is then not started). `*run_count` is the
  // step's, and one more once the step is started, whatever becomes of it.
  virtual absl::Status Start(const void* const* inputs, void* const* outputs,
                             uint64_t* run_count) = 0;
  virtual absl::Status Finish() = 0;
  // After Finish: whether the last step that Start returned OK for failed.
  virtual bool last_step_failed() const = 0;
  // The outputs of the last Start, for Buffer::SetPending. Null if none are still to come, as on
  // the host. `buffers` own the memory that Start was given, null where nobody waits by it.
  virtual std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const> buffers) = 0;
  virtual bool writes_outputs_later() const = 0;

  // Called around every kernel while set; waits for each one's work. Null switches it off.
  using Profile = std::function<void(const ir::Node&, const kernels::Kernel&, double seconds)>;
  void set_profile(Profile profile) { profile_ = std::move(profile); }

  const ir::Graph& graph() const { return *graph_; }
  // The kernels in order of execution, with the (first of the) nodes they compute.
  struct Step {
    const ir::Node* node;
    const kernels::Kernel* kernel;
  };
  std::vector<Step> steps() const;
  // One line per node: "%h = matmul: cpu:onednn:matmul (brgemm:avx512_core)" and the refusals.
  const std::string& kernel_log() const { return kernel_log_; }
  const passes::MemoryPlan& plan() const { return plan_; }

 protected:
  using Space = passes::Slot::Space;
  struct Call {
    std::vector<const ir::Node*> nodes;  // several: updates in one launch
    std::shared_ptr<kernels::Kernel> kernel;
    size_t first_input = 0;   // into input_slots_ and the tables made of it
    size_t first_output = 0;  // into output_slots_
    int64_t workspace = 0;    // arena offset
    bool can_fault = false;
  };

  Executable() = default;
  // `joins_updates`: one kernel for the updates of a group.
  absl::Status SelectKernels(Device::Kind device, bool joins_updates);
  absl::Status ResolveVariables(uint64_t seed, VariableStore& store);
  // Plans memory (workspaces are those of the selected kernels) and lays out the calls.
  void Plan(passes::MemoryPlanOptions options);
  absl::Status FaultOf(const ir::Node& node, const kernels::Fault& fault) const;

  std::unique_ptr<ir::Graph> graph_;
  std::shared_ptr<Arena> arena_;
  passes::MemoryPlan plan_;
  std::vector<ir::ValueType> input_types_, output_types_;
  std::map<int64_t, std::shared_ptr<kernels::Kernel>> selected_;  // by node id, until Plan
  std::vector<Call> calls_;
  std::vector<passes::Slot> input_slots_, output_slots_;
  std::vector<std::shared_ptr<VariableStorage>> variables_;  // in the order of the graph's
  std::vector<VariableStorage*> written_;
  std::vector<Tensor> constants_;
  std::string kernel_log_;
  Profile profile_;
};

}  // namespace halftone::runtime
