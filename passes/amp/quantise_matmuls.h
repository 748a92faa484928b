// quantise-matmuls: products of matrices on operands that are scaled to 8 bits, with a scale for
// each operand that follows what was seen of it in the steps before (delayed scaling).
//
// Before:      %h = linear(%x, %w, %b) : bf16[32,64]
//              f8_products()
// After:       %s = variable "f8.h.a.scale" {init="constant(1)"} : f32[]
//              %q, %i, %m = f8_quantise(%x, %s) {to=f8e4m3} : f8e4m3[32,128], f32[], f32[]
//              %h = f8_matmul(%q, %qw, %i, %iw, %b) {to=bf16, transpose_b=true} : bf16[32,64]
//              %ns, %s_next = f8_scale_update(%history, %s, %m) {to=f8e4m3} : f32[16], f32[]
//              commit "f8.h.a.scale" = %s_next       // and its history
// Formats:     f8e4m3; f8e5m2 for what the backward pass made, which needs range more than digits.
//              A value is quantised once for all products that read it in one format.
// Which:       products that mixed precision put in 16 bit and whose record has
//              ir::AmpTrait::in_f8, if the second operand is a matrix, the inner size and the
//              columns are multiples of 16 (what cuBLASLt asks for, on every device alike, so that
//              a step computes the same everywhere), one operand at least is of the forward pass,
//              and the target multiplies 8 bits. Steps without a backward pass, evaluation, have
//              none: the scales are those of training, and weights are kept in f32.
// State:       f32[] and f32[16] for each quantised value, from scale 1 and no history; kind scaler.
//              The first step quantises by 1. Moves in skipped steps too, in which what is not
//              finite leaves no trace.
// Requires:    PassContext::target; dtypes are final, and nothing is unread.
// Guarantees:  the marker is gone; results have their dtypes. The decision on every product that
//              mixed precision decided about says whether it is in 8 bits, or why not.
// Never:       changes what is not such a product; the values that are quantised are those that the
//              16-bit product would have read.
// Order:       after clean-up-casts and round-biases, when products leave f32 where they can and have
//              the biases that the device adds; before layouts.
// Stats:       "f8_products", "quantised".
// Source:      Transformer Engine, DelayedScaling with Format.HYBRID.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "halftone/graph/ir/types.h"
#include "halftone/passes/pass.h"

namespace halftone::passes {

inline constexpr char kF8Marker[] = "f8_products";
// Steps whose largest values a scale is made from. Long enough to ride out a batch that is small
// throughout, short enough that an outlier is forgotten.
inline constexpr int64_t kF8History = 16;

// The type of a variable of this pass, by its name: for a state that is loaded before the step is
// compiled. Nothing for other names.
std::optional<ir::ValueType> F8StateType(const std::string& variable);

std::unique_ptr<Pass> MakeQuantiseMatmuls();

}  // namespace halftone::passes
