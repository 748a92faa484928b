// advance-updates: updates of parameters go where they can run first.
//
// Before:      %dw1 = ..., %dw0 = ...                       (gradients in the order of backward)
//              %v1 = sgd_update(%w1, %dw1, ...), %v0 = sgd_update(%w0, %dw0, ...)
// After:       %dw1 = ..., %v1 = sgd_update(%w1, %dw1, ...)  (and %dw1 is needed no more)
//              %dw0 = ..., %v0 = sgd_update(%w0, %dw0, ...)
// Requires:    PassContext::target.
// Guarantees:  an update comes behind its operands, behind everything that reads what it writes over or
//              a cast of it, and behind the last node that may be the first to fault, so that it is written in place
//              there, too. What it needs of single numbers comes along. No value changes.
// Never:       moves an update that the target joins with others into one launch; one whose variable is
//              a result of the step before or after it; one that waits for all gradients anyway.
// Order:       after everything that adds or moves other nodes; before rematerialise, whose budget then
//              counts no gradient that nobody waits for.
// Stats:       "advanced".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeAdvanceUpdates();

}  // namespace halftone::passes
