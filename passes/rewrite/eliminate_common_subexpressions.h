// eliminate-common-subexpressions: one node for equal computations.
//
// Before:      %a = exp(%x)   %b = exp(%x)   %c = add(%a, %b)
// After:       %a = exp(%x)   %c = add(%a, %a)
// Guarantees:  the first of the equal nodes stays. A merged cast counts as the user's if one of
//              them was (clean-up-casts keeps the rounding of those).
// Never:       merges random ops, side effects, markers, inputs, variables, nodes for which the
//              user asked for different precision, or, while an `amp` marker waits, nodes of
//              different modules (a name pattern may tell them apart).
// Order:       after simplify, which makes more nodes equal; before eliminate-dead-code.
// Stats:       "merged".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeEliminateCommonSubexpressions();

}  // namespace halftone::passes
