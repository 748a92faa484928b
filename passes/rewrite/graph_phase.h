// Which part of a training step a node belongs to, by the passes that made it.
#pragma once

#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

enum class Phase { kForward, kBackward, kUpdate };
const char* Name(Phase phase);  // "forward", ...

// By position in graph.nodes(). What autodiff made is backward, and what is made anew for it; what lowers losses' scales,
// optimizers and scalers is update; what another pass made goes with the node it made it from, or
// else with its operands; the user's nodes are forward. Requires: a sorted graph.
std::vector<Phase> PhasesOf(const ir::Graph& graph);

}  // namespace halftone::passes
