// Executable: the kernels of one compiled graph, called in order.
//
// Invariants:
//  1. After the first run a run looks nothing up, takes no lock and allocates nothing outside
//     library calls: every argument table is built beforehand, only the caller's pointers change.
//  2. A run that faults changes no variable: no kernel that can fault runs after a variable was
//     written in place, and everything else is copied at the end.
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
#include "halftone/passes/memory_plan.h"

namespace halftone::runtime {

class Executable {
 public:
  // Takes a graph after the pipeline: no markers. Variables are looked up in `store`, and made
  // there. Errors: Unimplemented (a node no kernel runs, with each candidate's reason),
  // ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::unique_ptr<ir::Graph> graph,
                                                            const Device& device, uint64_t seed,
                                                            VariableStore& store,
                                                            std::shared_ptr<Arena> arena);
  ~Executable();

  // Types of the graph's inputs and outputs, in order.
  const std::vector<ir::ValueType>& input_types() const { return input_types_; }
  const std::vector<ir::ValueType>& output_types() const { return output_types_; }

  // One step. Pointers to plain-layout data of the input and output types, in order. Outputs are
  // written during the step, so they may overlap neither inputs nor each other.
  // Errors: OutOfRange with location, node, value and bound; outputs are then undefined.
  absl::Status Run(const void* const* inputs, void* const* outputs, uint64_t run_count);

  // Called around every kernel while set; costs a clock read each. Null switches it off.
  using Profile = std::function<void(const ir::Node&, const kernels::Kernel&, double seconds)>;
  void set_profile(Profile profile) { profile_ = std::move(profile); }

  const ir::Graph& graph() const { return *graph_; }
  // The kernels in order of execution, with their nodes.
  struct Step {
    const ir::Node* node;
    const kernels::Kernel* kernel;
  };
  std::vector<Step> steps() const;
  // One line per node: "%h = matmul: cpu:onednn:matmul (brgemm:avx512_core)" and the refusals.
  const std::string& kernel_log() const { return kernel_log_; }
  const passes::MemoryPlan& plan() const { return plan_; }

 private:
  using Space = passes::Slot::Space;
  struct Call {
    const ir::Node* node;
    std::unique_ptr<kernels::Kernel> kernel;
    size_t first_input = 0;   // into input_table_
    size_t first_output = 0;  // into output_table_
    int64_t workspace = 0;    // arena offset
    bool can_fault = false;
  };
  // A pointer of a table that the caller gives anew for each run.
  struct Patch {
    size_t table_index;
    Space space;
    size_t argument;
  };

  Executable() = default;
  absl::Status SelectKernels(const Device& device);
  absl::Status ResolveVariables(uint64_t seed, VariableStore& store);
  void Plan();
  // Null for the caller's own memory.
  void* Fixed(const passes::Slot& slot) const;
  const void* Address(const passes::Slot& slot, const void* const* inputs,
                      void* const* outputs) const;
  void Bind();
  absl::Status RunKernels(uint64_t run_count);

  std::unique_ptr<ir::Graph> graph_;
  std::shared_ptr<Arena> arena_;
  uint64_t bound_generation_ = 0;
  passes::MemoryPlan plan_;
  std::vector<ir::ValueType> input_types_, output_types_;
  std::map<int64_t, std::unique_ptr<kernels::Kernel>> selected_;  // by node id, until Plan
  std::vector<Call> calls_;
  std::vector<passes::Slot> input_slots_, output_slots_;  // what the tables hold
  std::vector<const void*> input_table_;
  std::vector<void*> output_table_;
  std::vector<Patch> input_patches_, output_patches_;
  std::vector<std::shared_ptr<VariableStorage>> variables_;  // in the order of the graph's
  std::vector<VariableStorage*> written_;
  std::vector<Tensor> constants_;
  std::string kernel_log_;
  Profile profile_;
};

}  // namespace halftone::runtime
