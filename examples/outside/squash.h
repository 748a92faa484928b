// An operator of one's own: y = x / (1 + |x|). (Halftone has it as softsign; here it stands for one
// that Halftone lacks.)
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/nn/value.h"

namespace outside {

// Makes the operator and its kernel known to the process. Call once, before the first graph.
absl::Status RegisterSquash();

// The function over values.
halftone::nn::Value squash(const halftone::nn::Value& x,
                           halftone::nn::Loc loc = halftone::nn::Loc::current());

}  // namespace outside
