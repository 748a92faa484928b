// decompose-unsupported: replaces ops that the target cannot run by simpler ones.
//
// Before:      %l = l1_loss(%a, %b) {reduction="mean"}        (no kernel on the target)
// After:       %s = sub(%a, %b)   %a1 = abs(%s)   %l = mean(%a1)
// Requires:    PassContext::target; no op that only markers lower is left.
// Guarantees:  every node that is left runs on the target. 16-bit operands of an op that
//              accumulates in f32 are cast to f32, and its results back.
// Never:       touches an op the target can run.
// Errors:      Unimplemented: an op that the target cannot run and that has no decomposition.
// Order:       after autodiff (gradients of the one op are better than those of its parts), before
//              the canonicalise group that cleans up what it makes.
// Stats:       "decomposed".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeDecomposeUnsupported();

}  // namespace halftone::passes
