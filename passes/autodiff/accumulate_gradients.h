// accumulate-gradients: makes one of the two steps that take a training step's place where the
// gradients of several micro-batches are to give one update. The marker says which.
//
// before:  accumulation() {part="accumulate"}
//          scaler() {name="scaler0"}
//          %norm, %applied = optimizer(%dw) {params=["w"], grad_params=["w"], scaler="scaler0"}
//          return loss=%l, applied=%applied
// after:   %count = add(%accumulation.micro_batches, 1)
//          %sum = gradient_sum_update(%optimizer0.w.grad_sum, %dw, 1, 1 / scale, 1, true, %count)
//          commit "optimizer0.w.grad_sum" = %sum
//          commit "accumulation.micro_batches" = %count
//          return loss=%l
//
// with part="update" instead, from the same graph:
//          scaler() {name="scaler0"}
//          %norm, %applied = optimizer(%optimizer0.w.grad_sum)
//              {params=["w"], grad_params=["w"], scaler="scaler0", accumulated=true}
//          commit "accumulation.micro_batches" = 0
//          return applied=%applied
//
// So the scale, the norm, clipping, schedules, averages and the check are matters of the second
// step, which insert-optimizers and update-scalers lower like any other. A gradient that is not
// finite leaves its sum so, and with that the update is skipped.
//
// requires:   autodiff and scale-losses ran.
// guarantees: no `accumulation` marker is left. "accumulate" leaves no optimizer and no scaler, changes
//             neither parameters nor their state, and adds each gradient, unscaled, in the type of
//             its parameter; the sum of a window begins with its first gradient, whatever the
//             variable held. Where buffers wait for finite gradients, those
//             of the micro-batch decide. "update" has no inputs, and of the outputs those of
//             optimizers alone. Where an optimizer has gradients of several scalers
//             (mixed_scales.h), "<scaler>.window_finite" holds what each is to hear of the window.
// order:      after scale-losses, before insert-optimizers.
// stats:      sums, guarded_buffers
// errors:     InvalidArgument: two `accumulation` markers; an unknown parameter; an optimizer whose
//             results a node reads.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeAccumulateGradients();

}  // namespace halftone::passes
