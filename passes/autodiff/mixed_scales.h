// Optimizers whose gradients come from losses with different grad scalers: the part of
// insert-optimizers that makes true gradients of them before anything else looks at them.
//
// before:  %n, %a = optimizer(%da, %db, %eb) {params=["w", "v"], grad_params=["w", "w", "v"],
//                                             grad_scalers=["a", "b", "b"], scaler="a"}
// after:   %fa, ... = grad_stats(1 / a.scale, %da)        // %fa goes to scaler "a"
//          %fb, ... = grad_stats(1 / b.scale, %db, %eb)   // %fb goes to scaler "b"
//          %w = add(mul(%da, 1 / a.scale), mul(%db, 1 / b.scale))   %v = mul(%eb, 1 / b.scale)
//          %n, %a = optimizer(%w, %v) {params=["w", "v"], grad_params=["w", "v"], scaler="",
//                                      skip_nonfinite=true}
//
// Each scaler hears of its own gradients only; the step is skipped where any part is not finite,
// since a sum with such a part is not. Unscaling and summing are in f32 (f64 for f64). Where all
// gradients have one scaler, it becomes the optimizer's and nothing is added; where none is scaled,
// nothing is checked.
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Requires: autodiff and scale-losses ran. The parameter groups of an optimizer stay alike.
absl::Status LowerMixedScales(ir::Graph& graph, const char* pass);

}  // namespace halftone::passes
