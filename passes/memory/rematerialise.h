// rematerialise: values of the forward pass are computed once more for the backward pass, so that
// they need not be held until then.
//
// Before:      %h = linear(%x, %w) recompute("fc")
//              %a = tanh(%h) recompute("fc")
//              %l = mean(%a)
//              ...
//              %dh = tanh_grad(%dy, %a)
//              memory_budget() {bytes=4096}
// After:       %h = linear(%x, %w) recompute("fc")
//              %a = tanh(%h) recompute("fc")
//              %l = mean(%a)
//              ...
//              %h.again = linear(%x, %w) pass("rematerialise","h") recompute("fc")
//              %a.again = tanh(%h.again) pass("rematerialise","a") recompute("fc")
//              %dh = tanh_grad(%dy, %a.again)
// Requires:    PassContext::target; the graph is final but for the launches of updates.
// Guarantees:  the markers are gone. What a module with recompute() computes is not held for the
//              backward pass (recomputed_modules.h). With a budget the arena that the memory plan
//              makes of the graph for this target takes no more; what is dropped for it is chosen
//              by budget_search.h. Without one, and without the marker `hold_cheap_values`, what
//              cheap_values.h finds is dropped, but in a graph that has repetitions from before. No
//              node runs more than twice, and no value changes: a repetition has the op, attributes
//              (seeds too), operands and types of what it repeats.
// Never:       repeats a node that may fault or has an effect: statistics move once. Touches what
//              the backward pass does not read.
// Errors:      ResourceExhausted: no choice that was tried meets the budget; names the smallest
//              arena among them, which is met if it is the budget, and the node that takes the most
//              by itself (largest_node.h). InvalidArgument: a second budget.
// Order:       when nodes have dtypes, layouts and kernels: a repetition gets those of what it
//              repeats, hence its bits. After the last merging of equal nodes. Before
//              group-updates and keep-low-weights, which go by the order of all nodes.
// Stats:       "repeated" (nodes); with a budget, or where cheap values are dropped, "arena_before"
//              and "arena_after" (bytes).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeRematerialise();

}  // namespace halftone::passes
