// apply-numerics: what the graph allows kernels, on every node that it concerns.
//
// Before:      %h = matmul(%x, %w)
//              %c = conv2d(%y, %k)
//              %d = conv2d_grad_weight(%a, %b) : f16[4,3,3,3]
//              numerics() {allow_tf32=true, deterministic=false, low_weight_gradients=true}
// After:       %h = matmul(%x, %w) {tf32=true}
//              %c = conv2d(%y, %k) {deterministic=false, tf32=true}
//              %d = conv2d_grad_weight(%a, %b) {deterministic=false, low_result=true} : f16[4,3,3,3]
// Requires:    dtypes are final.
// Guarantees:  the marker is gone. Of the nodes whose records have the attribute, `tf32` is true
//              where the marker allows it and operand 0 is f32, `deterministic` false where the
//              marker says so, and `low_result` true where it says so and the result is of 16 bit.
//              Without a marker nothing changes.
// Never:       depends on the target: a device may make no use of what it is allowed.
// Order:       after autodiff; before clean-up-casts, which absorbs no cast into a `low_result`, and
//              before decompose-unsupported, so that a program's own passes of a whole step see no
//              marker. Products that later passes make are strict.
// Stats:       "tf32", "nondeterministic", "low" (nodes).
// Errors:      InvalidArgument: a second marker.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeApplyNumerics();

}  // namespace halftone::passes
