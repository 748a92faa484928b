// What modules with recompute() ask for.
#pragma once

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/memory/recomputation.h"
#include "halftone/passes/memory/value_lives.h"

namespace halftone::passes {

// Of each call of such a module all values that the backward pass reads, and what they are made of,
// but for those that other parts of the step read before the backward pass, or as a result. Their
// `why` is the call.
Repeats RepeatsOfModules(const ir::Graph& graph, const ValueLives& lives);

}  // namespace halftone::passes
