// assign-layouts: activations channels-last between the ops that run best so.
//
// Before:      %c = conv2d(%x, %w) : f32[8,16,28,28]
//              %r = relu(%c)
//              %f = reshape(%r) {shape=[8, 12544]}
// After:       %x_nhwc = relayout(%x) {to="nhwc"}
//              %c = conv2d(%x_nhwc, %w) : f32[8,16,28,28]{nhwc}
//              %r = relu(%c) : f32[8,16,28,28]{nhwc}
//              %r_plain = relayout(%r) {to="plain"}
//              %f = reshape(%r_plain) {shape=[8, 12544]}
// Requires:    PassContext::target; all layouts plain (else nothing happens); no marker that adds
//              ops.
// Guarantees:  ports that a record names as channels-last are channels-last; ops that follow have
//              one layout for the result and every operand of its shape, chosen so that few bytes
//              are relaid; a value is relaid at most once. Logical shapes and all results stay.
// Never:       changes the layout of variables, constants, graph inputs, graph outputs, or any rank
//              but 4; touches the graph for a target that does not prefer channels-last.
// Order:       after clean-up-casts; before memory planning.
// Stats:       "channels_last" (values), "relayouts", "relayout_bytes" (of those that move data).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeAssignLayouts();

}  // namespace halftone::passes
