// merge-copies: copies in a row that only reorder one value become one copy, or none.
//
// Before:      %x: f32[2,64,8,8]{nhwc}
//              %y = relayout(transpose(relayout(%x) {to="plain"} ...) ...) {to="nhwc"}, as a pixel shuffle
// After:       %s: f32[2,8,8,64] = transpose(%x) {perm=[0,2,3,1]}, the same bytes
//              %y = a transpose of %s as f32[2,8,8,16,2,2], and the bytes of that as channels last
// Requires:    layouts are assigned.
// Guarantees:  the same bits, and fewer bytes moved.
// Never:       goes through a value that something else reads, too: it would be made all the same.
//              Nor through a reshape that cuts across the axes of a transpose.
// Order:       after assign-layouts, whose relayouts it merges with what the program moves; after
//              read-in-place, which may leave nothing to copy. Before tidying.
// Stats:       "copies_before", "copies_after" (of what it merged).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeMergeCopies();

}  // namespace halftone::passes
