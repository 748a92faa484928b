// Random functions. The numbers depend on the graph's seed, the module path, how many random ops
// that path has made, and the count of runs: not on the device, the dtype or the layout.
#pragma once

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// In training mode zero with probability p, else x / (1 - p); in evaluation mode x.
// Errors: p outside [0, 1).
Value dropout(const Value& x, double p = 0.5, Loc loc = Loc::current());

}  // namespace halftone::nn
