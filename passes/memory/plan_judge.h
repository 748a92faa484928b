// Memory plans of graphs that are tried out.
#pragma once

#include <map>
#include <string>

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"
#include "halftone/passes/memory/memory_plan.h"

namespace halftone::passes {

// Plans variants of one graph that differ in what they repeat. Asks the target once for the kernel
// of each node, which may be made for the answer; repetitions have those of what they repeat.
class PlanJudge {
 public:
  explicit PlanJudge(const ir::Target& target) : target_(target) {}

  // The plan of the graph as it will run: takes it through what still follows rematerialise in the
  // pipeline, which neither adds nor moves nodes.
  absl::StatusOr<MemoryPlan> Plan(ir::Graph& graph);

 private:
  const ir::KernelTraits& Traits(const ir::Node& node);

  const ir::Target& target_;
  std::map<std::string, ir::KernelTraits> traits_;
};

}  // namespace halftone::passes
