// fold-constants: evaluates nodes whose operands are all constants.
//
// Before:      %a = constant {value=dense<f32[]>(2)} : f32[]
//              %b = constant {value=dense<f32[]>(3)} : f32[]
//              %c = mul(%a, %b) : f32[]
// After:       %mul = constant {value=dense<f32[]>(6)} : f32[]
// Requires:    PassContext::evaluator; without one nothing happens.
// Guarantees:  each result is what the reference kernel gives, of the same type.
// Never:       folds random ops, side effects, markers, ops that may fault at run time, or a node
//              whose result has more than kMaxFoldedElements elements and more than its largest
//              operand, or would bring all such results over kMaxFoldedBytes or all such operands
//              over kMaxFoldReadBytes.
// Order:       before simplify and eliminate-common-subexpressions, which see the results.
// Stats:       "folded".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

// A folded broadcast would trade a few instructions for memory.
inline constexpr int64_t kMaxFoldedElements = 1024;
// Of all results with more elements than that, of one compilation together
// (PassContext::folded_bytes).
inline constexpr int64_t kMaxFoldedBytes = int64_t{1} << 26;
// Likewise of all operands: a short text may ask for many sums of one large constant.
inline constexpr int64_t kMaxFoldReadBytes = int64_t{1} << 28;

std::unique_ptr<Pass> MakeFoldConstants();

}  // namespace halftone::passes
