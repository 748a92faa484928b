// autodiff: adds the backward pass.
//
// Before:      %y = mul(%w, %x)   %l = sum(%y)
//              backward(%l) {scaler="scaler0", optimizers=[]}
//              %norm, %applied = optimizer() {params=["w"], scaler="scaler0", ...}
// After:       %y = mul(%w, %x)   %l = sum(%y)
//              %s = loss_seed(%l) {scaler="scaler0"}
//              %dy = broadcast_to(%s) ...   %dw = mul(%dy, %x)
//              %norm, %applied = optimizer(%dw) {params=["w"], grad_params=["w"], ...}
// Requires:    precision is decided (insert-amp-casts ran): gradients follow the forward dtypes.
// Guarantees:  no `backward`, `gradient` and `detach` is left. Losses that share a scaler and reach
//              the same optimizers are differentiated in one sweep; an optimizer takes the
//              gradients of all losses that reach it, in the order in which they are made (last
//              layer first), with `grad_params` naming them. Those of one scaler are summed as they
//              are; where they are of another than the optimizer's, `grad_scalers` names each
//              one's. A gradient has its value's dtype and shape. Contributions are summed by `add`
//              in node order, but those of slices that cover a value once are concatenated; what
//              arrives at a cast from f32 is summed in f32. `gradient(%y,
//              %x...)` is swept with the scale of its scaler and divided by it afterwards, in f32
//              for 16-bit values; where %y does not depend on %x it is zero. An op without gradient
//              but with a decomposition is decomposed, forward too.
// Never:       gives a gradient to a parameter that no loss depends on, or that is not trainable.
//              Gradients stop at integers, at non-differentiable ops (`detach`), and at values
//              nobody wants.
// Errors:      InvalidArgument: a loss that is not a float scalar; an unknown parameter or
//              optimizer; an optimizer whose scaler no loss that reaches it uses. Unimplemented: a
//              second derivative an op does not have.
// Notes:       an optimizer that no loss reaches.
// Order:       after insert-amp-casts and trim-amp-islands, before scale-losses.
// Stats:       "losses", "gradients", "nodes_added".
// Source:      Griewank, Walther: "Evaluating Derivatives", 2nd ed., section 3.2 (reverse mode).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeAutodiff();

}  // namespace halftone::passes
