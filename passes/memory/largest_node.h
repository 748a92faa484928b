// The node that needs the most at a time: below that no choice of what to compute again can go.
#pragma once

#include <cstdint>

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/value_lives.h"

namespace halftone::passes {

struct LargestNode {
  const ir::Node* node = nullptr;  // null: nothing runs
  int64_t bytes = 0;               // operands and results in the arena, and scratch
};

// A result that its op may write over an operand takes no bytes of its own, whether the plan has it so or
// not. `plan` is that of `graph`.
LargestNode FindLargestNode(const ir::Graph& graph, const ValueLives& lives,
                            const MemoryPlan& plan);

}  // namespace halftone::passes
