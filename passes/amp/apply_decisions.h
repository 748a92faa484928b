// Turns decisions into dtypes and casts.
#pragma once

#include "halftone/passes/amp/amp_graph.h"

namespace halftone::passes {

// Brings the graph into the form that its nodes' `amp` decisions describe: removes the casts that
// the precision passes own, gives every decided node its dtype (types inferred anew), and inserts
// one cast per (value, dtype), shared by all its readers. Ports that an op keeps f32, graph outputs
// (unless `low_outputs`), roots and nodes without a decision read f32 as before; a user's cast and
// the values that a `gradient` marker differentiates by are read as they are. Returns the number of
// casts in the result. Errors: Internal, where inference refuses what the trait of the op promised.
absl::StatusOr<int> ApplyDecisions(ir::Graph& graph, bool low_outputs);

}  // namespace halftone::passes
