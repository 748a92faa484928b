// clean-up-casts: no cast that another cast or a kernel makes unnecessary.
//
// Before:      %a = cast(%w) {to=bf16}   %b = cast(%w) {to=bf16}
//              %g = matmul(%x, %dy) {transpose_a=true} : bf16[4,8]
//              %h = cast(%g) {to=f32}
//              %l = cast(%logits) {to=f32}
//              %loss, %stats = cross_entropy(%l, %target)
//              %dl = cross_entropy_grad(%l, %target, %stats, %one) : f32[4,8]
//              %d = cast(%dl) {to=bf16}
// After:       %a = cast(%w) {to=bf16}                      (and every reader of %b reads %a)
//              %g = matmul(%x, %dy) {transpose_a=true, out="f32"} : f32[4,8]
//              %loss, %stats = cross_entropy(%logits, %target)
//              %dl = cross_entropy_grad(%logits, %target, %stats, %one) : bf16[4,8]
// Requires:    no marker that makes casts is left.
// Guarantees:  no two casts share (value, dtype). Back-to-back casts go where the value cannot
//              change: f32 -> f64 -> f32, bf16 -> f32 -> bf16. Where the sole reader of a 16-bit
//              gradient is the cast to f32 that autodiff made, an op with the attribute `out`
//              writes f32 itself, unless its `low_result` says otherwise. That is the one place where
//              a result gets more precise than the graph said. Ops that widen what they read
//              (ir::AmpTrait::widens_inputs) read a 16-bit value instead of its cast to f32 where
//              that makes the cast superfluous: all its readers are such ops, the device has kernels
//              for the dtype, and an output that becomes 16-bit was read by casts to that dtype
//              alone. Those go too; no bit changes, but where a
//              device orders the terms of a sum by the dtype that it reads.
// Never:       removes a rounding that the user wrote: f32 -> f16 -> f32 stays, and a cast of the
//              user's is not absorbed. Nor one of insert-amp-casts: values of the forward pass are
//              what 16 bit makes of them.
// Order:       after insert-optimizers, when all readers of the gradients exist; before
//              assign-layouts.
// Stats:       "merged", "removed", "widened" (casts that ops which widen make superfluous),
//              "absorbed".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeCleanUpCasts();

}  // namespace halftone::passes
