// eliminate-dead-code: removes what no output and no side effect depends on.
//
// Before:      %w = variable "w" : f32[4]   %o = variable "old" {kind="buffer"} : f32[4]
//              %a = relu(%w)   %b = exp(%x)
//              return %b
// After:       variable "w" : f32[4]
//              %b = exp(%x)
//              return %b
// Guarantees:  outputs and commits compute what they did.
// Never:       removes a graph input (the signature stays) or a side effect; forgets a parameter,
//              or a variable that a commit writes: unread, these lose their node and keep their
//              declaration.
// Order:       after every pass that leaves replaced nodes behind.
// Stats:       "removed", "variables_removed".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeEliminateDeadCode();

}  // namespace halftone::passes
