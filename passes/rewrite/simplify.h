// simplify: local rules that change no bit of any result.
//
// Before:      %c = cast(%x) {to=f32}   %d = cast(%c) {to=bf16}   %e = mul(%d, 1)
// After:       %d = cast(%x) {to=bf16}                            (and %c, unread)
// Guarantees:  every rule is exact for every input, inf, NaN and -0 included. The rules are the
//              table of simplify_rules.h.
// Never:       x + 0 (gives +0 for x = -0; only x + -0 and x - 0 go), x * 0, x - x, or a cast pair
//              that rounds: f32 -> f16 -> f32 stays. Nor, while an `amp` marker stands, a cast that
//              changes no type: it does once its operand is 16 bit.
// Order:       after fold-constants, before eliminate-common-subexpressions.
// Stats:       one counter per rule that fired.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeSimplify();

}  // namespace halftone::passes
