// insert-amp-casts: mixed precision. Chooses for every float node of the forward graph whether it
// runs in 16 bit, sets the dtypes and inserts the casts.
//
// before:  %h = matmul(%x, %w) : f32[8,4]              // with a marker: amp {dtype=bf16}
// after:   %x_bf16 = cast(%x) {to=bf16} : bf16[8,16]
//          %w_bf16 = cast(%w) {to=bf16} : bf16[16,4]   // one, whoever reads %w in bf16
//          %h = matmul(%x_bf16, %w_bf16) : bf16[8,4]
//
// requires:   a graph that is not yet differentiated; the `amp` marker with the policy (none:
//             nothing happens). The low type and the device enter only through marker and Target.
// guarantees: every float node has a decision with a reason (ir::Node::amp); at most one cast per
//             (value, dtype); graph inputs, variables and, unless the policy says low_outputs,
//             graph outputs keep their dtypes; running it again changes nothing; the decisions do
//             not depend on the order of nodes.
// never:      touches integers, bool, f64, values the user made 16-bit, casts the user wrote.
// order:      before autodiff; verify-amp-dtypes and trim-amp-islands follow. The latter removes
//             the marker.
// stats:      low_nodes, f32_nodes, casts
// notes:      constants out of the low type's range, wishes that the device cannot grant
// source:     TensorFlow core/grappler/optimizers/auto_mixed_precision.cc (the painting)
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

// Errors: InvalidArgument for a policy entry that matches nothing.
std::unique_ptr<Pass> MakeInsertAmpCasts();

}  // namespace halftone::passes
