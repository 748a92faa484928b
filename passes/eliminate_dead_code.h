// eliminate-dead-code: removes what no output and no side effect depends on.
//
// Before:      %w = variable "w" ...   %s = variable "old" {kind="buffer"} ...
//              %a = relu(%x)   %b = exp(%x)
//              return %b
// After:       %w = variable "w" ...
//              %b = exp(%x)
//              return %b
// Guarantees:  outputs and commits compute what they did.
// Never:       removes a graph input (the signature stays), a side effect, a parameter, or a
// variable
//              that a commit writes; these keep their node, which is also their declaration in the
//              text.
// Order:       after every pass that leaves replaced nodes behind.
// Stats:       "removed", "variables_removed".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeEliminateDeadCode();

}  // namespace halftone::passes
