// An operator of one's own: y = x / (1 + |x|).
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/nn/value.h"

namespace outside {

// Makes the operator and its kernel known to the process. Call once, before the first graph.
absl::Status RegisterSoftsign();

// The function over values.
halftone::nn::Value softsign(const halftone::nn::Value& x,
                             halftone::nn::Loc loc = halftone::nn::Loc::current());

}  // namespace outside
