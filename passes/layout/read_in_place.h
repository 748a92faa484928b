// read-in-place: attention reads slices and transposes where they lie, and writes its results as they
// are wanted.
//
// Before:      %packed: f32[8,128,2304]
//              %q = transpose(reshape(slice(%packed) {...}) {shape=[8,128,12,64]}) {perm=[0,2,1,3]}
//              %k, %v likewise
//              %y, %y#1 = scaled_dot_product_attention(%q, %k, %v)
//              %t = transpose(%y) {perm=[0,2,1,3]}
// After:       %y, %y#1 = scaled_dot_product_attention(%packed, %packed, %packed) {heads_last=true,
//                  query_view=[8, 12, 128, 64, 294912, 64, 2304, 1, 0], ...}
//              and %y for %t; the gradient likewise, with %dq, %dk, %dv for their transposes
// Requires:    autodiff ran: there is no gradient of what reads in place. Layouts are assigned.
// Guarantees:  the same bits. What is left unread is for eliminate-dead-code.
// Never:       views a value that is larger than what the op reads of it, which would hold the rest of it
//              for longer. Takes heads_last where a transpose had to be added for it.
// Order:       after assign-layouts, before its tidying.
// Stats:       "views" (operands), "heads_last" (ops).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeReadInPlace();

}  // namespace halftone::passes
