// StepPlan: all that is decided of a step before it runs: which kernels are called in which order,
// where their operands and results live, what is copied at the end. Plain data, which runners take
// const: the host's (host_runner.h) and an accelerator's (device_runner.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/kernel.h"
#include "halftone/passes/memory/memory_plan.h"

namespace halftone::runtime {

struct StepPlan {
  using Slot = passes::Slot;

  struct Call {
    std::vector<const ir::Node*> nodes;  // several: updates in one launch
    std::shared_ptr<kernels::Kernel> kernel;
    size_t first_input = 0;   // into input_slots
    size_t first_output = 0;  // into output_slots
    size_t first_copy = 0;    // into copies
    int64_t workspace = 0;    // arena offset
    int packed = -1;          // into packed; -1: none
    bool can_fault = false;
    bool communicates = false;  // with other ranks
  };
  // A cast that the runner holds from step to step. Its kernel makes it again where it is stale.
  struct KeptCast {
    int variable = 0;
    DType dtype = DType::kF16;
    Call call;  // its kernel alone, without arguments
    bool written_by_update = false;
    bool only_packed = false;  // read by packings alone, and not held between them
  };
  // A weight that the runner holds in the order of a call's kernel, which makes it again where it is
  // stale.
  struct Packed {
    size_t call = 0;
    int variable = -1;  // that it comes from; -1: a constant
    int kept = -1;      // the cast of it that is packed; -1: the value itself
  };
  // Of a whole slot that is not empty.
  struct Copy {
    Slot from, to;
  };

  std::unique_ptr<const ir::Graph> graph;  // what calls refer to
  std::vector<ir::ValueType> input_types, output_types;
  std::vector<Tensor> constants;  // in node order, as slots count them
  std::vector<Call> calls;
  std::vector<Slot> input_slots, output_slots;  // of all calls, one after the other
  // By node of a call, that of all calls one after the other: the kept cast that an update writes
  // besides its parameter; -1: none.
  std::vector<int> copies;
  std::vector<KeptCast> kept;
  std::vector<Packed> packed;
  bool communicates = false;  // whether any call does
  // After the last call, in this order. A variable that another commit reads is staged in the arena
  // first. A step with a fault does not do the last ones.
  std::vector<Copy> output_copies, staging_copies, commit_copies;
  std::vector<int> written;  // the variables that the step commits, in order of the commits
  passes::MemoryPlan memory;
  // One line per node: "%h = matmul: cpu:onednn:matmul (brgemm:avx512_core)" and the refusals.
  std::string kernel_log;
};

// Selects kernels for a lowered graph and plans memory. `traits`: of the target that the graph was
// lowered for. Casts are kept as the graph says where that keeps any, and updates joined on an
// accelerator; else they run as nodes. Weights are packed where the graph says so and the kernel has an
// order of its own. For CUDA a thread calls DeviceBackend::stream first, since kernels ask their
// libraries for handles of the thread's device. Errors: Unimplemented (a node no kernel runs, with each
// candidate's reason), ResourceExhausted; Internal if the graph and the plan of memory do not agree on
// what an update writes; InvalidArgument for a packed operand that does not stay from step to step.
absl::StatusOr<StepPlan> PlanStep(std::unique_ptr<ir::Graph> graph, Device::Kind device,
                                  const passes::StepTraits& traits);

// "model.cc:42: ", the user's line that made the node; empty if unknown.
std::string WhereOf(const ir::Node& node);

// The error of a step that ended, or did nothing more, at `call`.
absl::Status FaultOf(const StepPlan::Call& call, const kernels::Fault& fault);

}  // namespace halftone::runtime
