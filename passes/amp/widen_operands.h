// widen-operands: says of every product on 16-bit operands whether the device computes on them, or
// in f32 on copies of them, and why.
//
// Before:      %h = linear(%x, %w) : bf16[8,4]
// After:       %h = linear(%x, %w)
//                  {widened="cpu:onednn:linear: the processor multiplies bf16 no faster than f32"}
//                  : bf16[8,4]
// Requires:    PassContext::target; dtypes and layouts are final.
// Guarantees:  the attribute `widened` of every node that has one is the target's reason, or empty;
//              kernels obey it. Types stay: an operand is copied while its reader runs, a result is
//              rounded once from f32, as the device's own kernels round it.
// Never:       adds a node: the copies are workspace of the kernel, so that none outlives it.
// Order:       after assign-layouts; nothing that changes a type comes later.
// Stats:       "widened".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeWidenOperands();

}  // namespace halftone::passes
