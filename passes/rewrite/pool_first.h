// pool-first: the relu of a maximum for the maximum of a relu, which is fewer elements.
//
// Before:      %r = relu(%x)
//              %y, %y#1 = max_pool2d(%r) {kernel=[2,2], stride=[2,2]}
// After:       %y, %y#1 = max_pool2d(%x) {kernel=[2,2], stride=[2,2]}
//              %r = relu(%y)
// Requires:    nodes have their dtypes. Nothing is plainer after autodiff: a relu has a second reader then.
// Guarantees:  the same bits, those of gradients too: relu keeps the order of what it does not make 0, and
//              where a window's maximum is 0 no gradient passes, whichever element it is of. What the
//              backward pass holds of the relu has the size of the pooling's result.
// Never:       fires where the relu is read by anything else or is a result of the graph, where the index is
//              read, where a window may lie in the padding as a whole, whose maximum is -inf, or
//              where the pooling's result has as many elements as its operand.
// Order:       after the passes that decide precision, right before autodiff.
// Stats:       "swapped".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakePoolFirst();

}  // namespace halftone::passes
