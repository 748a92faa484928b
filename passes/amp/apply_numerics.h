// apply-numerics: what the graph allows kernels, on every node that it concerns.
//
// Before:      %h = matmul(%x, %w)
//              %c = conv2d(%y, %k)
//              numerics() {allow_tf32=true, deterministic=false}
// After:       %h = matmul(%x, %w) {tf32=true}
//              %c = conv2d(%y, %k) {deterministic=false, tf32=true}
// Requires:    dtypes are final.
// Guarantees:  the marker is gone. Of the nodes whose records have the attribute, `tf32` is true
//              where the marker allows it and operand 0 is f32, `deterministic` false where the
//              marker says so. Without a marker nothing changes.
// Never:       depends on the target: a device may make no use of what it is allowed.
// Order:       after autodiff; before decompose-unsupported, so that a program's own passes of a
//              whole step see no marker. Products that later passes make are strict.
// Stats:       "tf32", "nondeterministic" (nodes).
// Errors:      InvalidArgument: a second marker.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeApplyNumerics();

}  // namespace halftone::passes
