// round-biases: an f32 bias beside 16-bit operands is cast where the device's libraries would round
// it.
//
// Before:      %h = linear(%x, %w, %b) : f16[8,4]    (%b in f32)
// After:       %b_f16 = cast(%b) {to=f16} : f16[4]
//              %h = linear(%x, %w, %b_f16) : f16[8,4]
// Requires:    PassContext::target; dtypes are final, gradients are there (that of the bias stays
//              f32).
// Guarantees:  products on matrix units (class `allow`) have the ports that stay f32 under mixed
//              precision in the dtype of operand 0. A value is cast once for all its readers.
// Never:       touches the graph for a target that does not round biases.
// Order:       after clean-up-casts, which goes by the f32 ports of records; before
//              keep-low-weights, which keeps the casts of biases.
// Stats:       "rounded_biases".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeRoundBiases();

}  // namespace halftone::passes
