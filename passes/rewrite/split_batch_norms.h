// split-batch-norms: batch_norm as its statistics and an elementwise op, where fuse can use that.
//
// Before:      %y, %y#1, %y#2, %y#3, %y#4 = batch_norm(%x, %gamma, %beta, %mean, %var)
//              %r = relu(%y)
// After:       %s, %s#1, ..., %s#5 = batch_norm_stats(%x, %gamma, %mean, %var)
//              %y = batch_norm_apply(%x, reshape(%s), reshape(%s#4), reshape(%s#5), reshape(%beta))
//              %r = relu(%y)
// Requires:    PassContext::target. Nodes have their dtypes and layouts.
// Guarantees:  the device gives the same bits: batch_norm is these two there. Fires only where the one
//              reader of the result is an elementwise op that fuse takes in, and channels are innermost.
// Never:       fires on a device that fuses nothing, or on a result below kLeastFusedElements.
// Order:       right before fuse.
// Stats:       "split".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeSplitBatchNorms();

}  // namespace halftone::passes
