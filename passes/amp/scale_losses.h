// scale-losses: puts the loss scale into the seed of the backward pass, and drops scalers that are
// not at work.
//
// before:  %s = loss_seed(%loss) {scaler="scaler0"} : f32[]
// after:   %scale = variable "scaler0.scale" {kind="scaler", init="constant(65536)"} : f32[]
//          ... where %s was, %scale; without a scaler the constant 1
//
// The seed is scaled, in f32, and not the loss: the loss that the user sees is the true one, and a
// scale beyond f16's range never meets f16.
//
// requires:   autodiff ran.
// guarantees: no loss_seed is left. A disabled scaler, and an automatic one where no value is f16,
//             is removed and no optimizer refers to it: the step is that of a graph without scaler.
// order:      after autodiff, before insert-optimizers.
// stats:      scaled_losses, dropped_scalers
// notes:      one for an automatic scaler, dropped or not
// errors:     InvalidArgument: a scaler declared twice, or named but not declared.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeScaleLosses();

}  // namespace halftone::passes
