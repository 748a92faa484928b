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
// Markers of one name are the parameter groups of one optimizer: one grad_stats over all, one step
// count, hyper-parameters and learning rate of their own ("optimizer0.group1.lr").
//
// Without a scaler and without skip_nonfinite there is no check, every step is applied and the
// inverse scale is the constant 1; of accumulated gradients (accumulate_gradients.h) it is 1 over the
// count of micro-batches. Under skip="any" the flag is the conjunction over all optimizers
// that are checked. With clip_norm_of_all the coefficient is made of one norm over all optimizers
// that say so and do not skip the step.
//
// Where the optimizer has `owners` (insert_all_reduce.h) a rank updates and averages the parameters that it
// owns, takes the others from those that do (gather_weights.h), and makes the statistics with all:
//
//          %squares = grad_squares(%inv, %dw)                  // 0 where another rank has the gradient
//          %of_all = all_reduce(%squares) {reduction="sum"}
//          %finite, %norm, %bad = grad_stats_of_squares(%of_all)
//
// Where the gradient of a table is that of embeddings with sparse = true alone, grad_stats and the
// update get its rows (row_gradients.h):
//
//          %rows, %ids = embedding_grad_rows(%dy, %i) {rows=1000}
//          %w_next = sgd_update_rows(%w, %rows, %lr, %inv, %clip, %finite, %step, %ids)
//
// requires:   autodiff and scale-losses ran. Gradients of several scalers are first made true ones
//             (mixed_scales.h).
// guarantees: no `optimizer` marker is left; scaler markers have got the finite flag of each of
//             their optimizers that has gradients. A skipped step leaves parameters, slots,
//             applied_steps and with them the schedule bit-identical; so are buffers in a step that
//             skip_nonfinite skips. An optimizer without gradients updates nothing and counts
//             neither a step nor a check: applied is false and grad_norm 0.
// order:      after scale-losses, before update-scalers.
// With ema, behind the updates: %step = add(%ema_steps, 1), a weight made of it, and for each
// parameter commit "optimizer0.w.ema" = moving_average_update(%ema, %w_next, %weight, ...).
//
// stats:      optimizers, updates, row_gradients, averages, guarded_buffers
// notes:      a table that is dense although an embedding of it is sparse.
// errors:     InvalidArgument: an unknown parameter, one that has a commit already or two
//             optimizers; a bad schedule; an unknown rule; a name declared twice; groups that
//             disagree in what holds for the optimizer; two values of clip_norm_of_all; a sparse
//             gradient under a rule that changes every row, a dense one under sparse_adam.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeInsertOptimizers();

}  // namespace halftone::passes
