// Memory planning: where every value of a sorted graph lives during a step. Plain data; the runtime
// turns slots into addresses.
//
// Values live in one arena, except: graph inputs, constants and variables where they are; a graph
// output in the caller's buffer from the start; the new value of a variable in the variable itself,
// where that is safe. Reshapes and the like share their operand's bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"

namespace halftone::passes {

struct MemoryPlanOptions {
  // Scratch bytes that the kernel of a node needs while it runs; of a launch, asked of its first
  // node. Empty: none.
  std::function<int64_t(const ir::Node&)> workspace_bytes;
  // Write outputs over operands that nobody reads again, for the pairs an op's record allows.
  bool reuse_operands = true;
  // Write the new value of a variable straight into it. Allowed when everything that reads the old
  // value runs earlier (or is the writer, through an in-place pair), the value is no graph output,
  // and no node that may be the first to fault (fault_order.h) runs at the same time or later: a fault
  // leaves all variables unchanged.
  bool write_variables_in_place = true;
  // Whether a node may be such a writer. Empty: any. For devices on which a step runs on after a
  // fault.
  std::function<bool(const ir::Node&)> may_write_variable;
  // Kept casts (keep_low_weights.h) have a place beside the arena, where whoever runs the plan
  // holds them from step to step: they do not run in it. False: they are casts like others. Goes
  // with write_variables_in_place, which updates that write kept casts rely on.
  bool keep_casts = true;
};

// What of a device they depend on, see ir::Target.
struct StepTraits {
  bool keeps_low_weights = false;
  bool runs_on_after_fault = false;
};
StepTraits StepTraitsOf(const ir::Target& target);

// Those under which a step runs. `traits_of`: of the kernel that runs a node.
MemoryPlanOptions PlanOptionsFor(const ir::Graph& graph, const StepTraits& device,
                                 const std::function<ir::KernelTraits(const ir::Node&)>& traits_of);

struct Slot {
  enum class Space : uint8_t { kArena, kInput, kOutput, kConstant, kVariable, kKept };
  Space space = Space::kArena;
  // Which one: position in graph.inputs(), graph.outputs() or graph.variables(); constants and kept
  // values count in node order. 0 in the arena.
  int index = 0;
  int64_t offset = 0;  // arena only; a multiple of 64
  int64_t bytes = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct NodePlan {
  std::vector<Slot> outputs;
  int64_t workspace_offset = 0;  // in the arena
  int64_t workspace_bytes = 0;
  // False for inputs, variables, constants and commits, for nodes that share their operand's bytes,
  // and for kept ones.
  bool runs = true;
  // Runs in one launch with the node before it that runs (group_updates.h): operands and results of
  // all nodes of a launch are there at once.
  bool joins = false;
};

// Graph output `output` is copied from `from` after the last node.
struct OutputCopy {
  int output = 0;
  Slot from;
};

// Variable `variable` is copied from `from` after the output copies. A staged source is itself a
// variable that another commit writes: all staged sources are copied to their place in the arena
// before the first variable is written.
struct CommitCopy {
  int variable = 0;
  Slot from;
  bool staged = false;
  int64_t staging_offset = 0;
};

struct MemoryPlan {
  std::vector<NodePlan> nodes;  // by position in graph.nodes()
  std::vector<OutputCopy> output_copies;
  std::vector<CommitCopy> commit_copies;
  int64_t arena_bytes = 0;

  // For reports: the arena if nothing shared memory, and what was saved.
  int64_t unshared_bytes = 0;
  int operands_reused = 0;
  int variables_in_place = 0;
};

// Requires: a sorted, verified graph without markers.
MemoryPlan PlanMemory(const ir::Graph& graph, const MemoryPlanOptions& options = {});

}  // namespace halftone::passes
