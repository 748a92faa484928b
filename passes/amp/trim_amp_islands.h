// trim-amp-islands: turns 16-bit islands back to f32 where their casts move more bytes than the
// narrower values save, and takes away the `amp` marker.
//
// An island is a connected set of 16-bit nodes of class infer or clear; allowed nodes and nodes
// that the user forced are never touched. In bytes, read and written:
//   saved     what the island's ops move less in 16 bit (op records' cost)
//   low       casts at the island's edge while it is 16-bit
//   f32       casts that take their place if it is f32
// It turns back if low > f32 + saved. Casts of constants are free: they are folded.
//
// before:  %y = mul(%h, %p_bf16) : bf16[4096,64]   // %h: bf16[1,64]; %p: f32[4096,64], only here
//          %y_f32 = cast(%y) {to=f32}
// after:   %h_f32 = cast(%h) {to=f32}
//          %y = mul(%h_f32, %p) : f32[4096,64]
//
// requires:   insert-amp-casts ran.
// guarantees: what insert-amp-casts guarantees; no marker is left. All islands are judged on the
//             graph as it was before, so that order does not matter.
// order:      after insert-amp-casts, before autodiff.
// stats:      islands, trimmed_islands, trimmed_nodes
// source:     own; grappler has no such step.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeTrimAmpIslands();

}  // namespace halftone::passes
