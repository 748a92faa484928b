// insert-optimizers: turns each `optimizer` marker into update nodes and commits.
//
// before:  %norm, %applied = optimizer(%dw) {rule="sgd", params=["w"], lr=0.1, scaler="scaler0"}
// after:   %inv = 1 / scale, rounded once
//          %finite, %norm, %bad = grad_stats(%inv, %dw)        // after unscaling; every gradient
//          %clip = min(1, clip_norm / (%norm + 1e-6))          // only with clip_norm
//          %step = add(%applied_steps, 1)
//          %w_next = sgd_update(%w, %dw, %lr, %inv, %clip, %finite, %step)
//          commit "w" = %w_next
//          commit "optimizer0.applied_steps" = where(%finite, %step, %applied_steps)
//
// Without a scaler there is no check, every step is applied and the inverse scale is the
// constant 1. Under skip="any" the flag is the conjunction over all optimizers that have a scaler.
//
// requires:   autodiff and scale-losses ran. The gradients of an optimizer all come from losses of
//             its scaler.
// guarantees: no `optimizer` marker is left; scaler markers have got the finite flag of each of
// their
//             optimizers that has gradients. A skipped step leaves parameters, slots, applied_steps
//             and with them the schedule bit-identical. An optimizer without gradients updates
//             nothing and counts neither a step nor a check: applied is false and grad_norm 0.
// order:      after scale-losses, before update-scalers.
// stats:      optimizers, updates
// errors:     InvalidArgument: an unknown parameter, one that has a commit already or two
// optimizers;
//             a bad schedule; an unknown rule; a name declared twice.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeInsertOptimizers();

}  // namespace halftone::passes
