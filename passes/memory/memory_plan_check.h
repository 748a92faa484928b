// Proves that a memory plan is sound, by another way than the planner's: it plays the schedule over
// bytes that remember which value they hold.
#pragma once

#include "halftone/core/status.h"
#include "halftone/passes/memory/memory_plan.h"

namespace halftone::passes {

// Checks, step by step, that
//  1. every operand a node reads, and every source of a copy at the end, still holds its value in
//     all of its bytes (so no two live buffers overlap);
//  2. within a launch of several nodes nobody writes what another one reads or writes; no output overlaps an operand, unless it is exactly that operand through an in-place pair of
//     the record, read by no other port; outputs and scratch of a node do not overlap each other;
//  3. nothing writes a graph input, a constant, or the buffer of another graph output;
//  4. a variable is written before the end only by its commit's value, and no node that may fault
//     runs from then on, unless one that ran has checked its indices;
//  5. at the end every graph output and every committed variable holds its value, and every other
//     variable its old one;
//  6. an update writes a kept cast only beside a parameter in place, and nobody reads the old one
//     after it;
//  7. slots have the size of their values; arena offsets are aligned and inside the arena; scratch
//     is as large as the options say.
// Errors: Internal, naming the node, the value and what holds its bytes instead.
absl::Status CheckMemoryPlan(const ir::Graph& graph, const MemoryPlan& plan,
                             const MemoryPlanOptions& options = {});

}  // namespace halftone::passes
