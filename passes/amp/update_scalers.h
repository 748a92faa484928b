// update-scalers: turns each `scaler` marker into the update of its state.
//
// before:  scaler(%finite0, %finite1) {name="scaler0", growth_interval=2000}
// after:   %ok = logical_and(%finite0, %finite1)
//          %scale_next, %tracker_next, ... = loss_scale_update(%scale, %tracker, ..., %ok)
//          commit "scaler0.scale" = %scale_next   // and the other five
//          commit "bn.running_mean" = where(%ok, %new_mean, %running_mean)
//
// One update a step, however many optimizers share the scaler, and after all of them: every use of
// the scale in the step sees the value at its start.
//
// requires:   insert-optimizers ran.
// guarantees: no `scaler` marker is left. A scaler without a flag (none of its optimizers has
//             gradients) keeps its state. Variables of kind buffer (norm statistics, averages)
//             keep their values in a step whose gradients are not all finite, unless the scaler
//             says update_buffers_on_skip.
// order:      after insert-optimizers.
// stats:      scalers, guarded_buffers
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeUpdateScalers();

}  // namespace halftone::passes
