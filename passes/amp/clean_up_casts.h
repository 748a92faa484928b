// clean-up-casts: no cast that another cast or a kernel makes unnecessary.
//
// Before:      %a = cast(%w) {to=bf16}   %b = cast(%w) {to=bf16}
//              %g = matmul(%x, %dy) {transpose_a=true} : bf16[4,8]
//              %h = cast(%g) {to=f32}
// After:       %a = cast(%w) {to=bf16}                      (and every reader of %b reads %a)
//              %g = matmul(%x, %dy) {transpose_a=true, out="f32"} : f32[4,8]
// Requires:    no marker that makes casts is left.
// Guarantees:  no two casts share (value, dtype). Back-to-back casts go where the value cannot
//              change: f32 -> f64 -> f32, bf16 -> f32 -> bf16. Where the sole reader of a 16-bit
//              gradient is the cast to f32 that autodiff made, an op with the attribute `out`
//              writes f32 itself. That is the one place where a result gets more precise than the
//              graph said.
// Never:       removes a rounding that the user wrote: f32 -> f16 -> f32 stays, and a cast of the
//              user's is not absorbed. Nor one of insert-amp-casts: values of the forward pass are
//              what 16 bit makes of them.
// Order:       after insert-optimizers, when all readers of the gradients exist; before
//              assign-layouts.
// Stats:       "merged", "removed", "absorbed".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeCleanUpCasts();

}  // namespace halftone::passes
