// A pass of one's own: x / (1 + |x|), written with the functions of Halftone, becomes one squash.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace outside {

// %a = abs(%x); %d = add(%a, 1); %y = div(%x, %d)  ->  %y = squash(%x). Stage: kForward.
// Never: for a dtype that squash does not take. Stats: fused.
std::shared_ptr<halftone::passes::Pass> MakeFuseSquash();

}  // namespace outside
