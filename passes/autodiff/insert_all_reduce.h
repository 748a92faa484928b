// insert-all-reduce: in a job of several ranks, gradients of all are reduced before they are used.
//
// before:  data_parallel() {ranks=4, bucket_bytes=26214400, reduction="mean", wire=f32}
//          %dw1 = ..., %dw0 = ...                         (in the order of backward)
//          %norm, %applied = optimizer(%dw0, %dw1) {params=["w0", "w1"], ...}
// after:   %dw1 = ...
//          %b0 = all_reduce_start(%dw1) {ranks=4}         (the bucket is full)
//          %dw0 = ...
//          %b1 = all_reduce_start(%dw0) {ranks=4}
//          %r1 = all_reduce_wait(%b0) {ranks=4, shapes=["[8,16]"]}
//          %r0 = all_reduce_wait(%b1) {ranks=4, shapes=["[4,8]"]}
//          %norm, %applied = optimizer(%r0, %r1) {params=["w0", "w1"], ...}
//
// With shard_optimizer, on rank 1, where `owners` of the optimizer has rank 0 for w0 and rank 1 for w1:
//
//          %b0 = reduce_scatter_start(%dw1) {owners=[1], rank=1, ranks=4, shapes=["[8,16]"]}
//          %b1 = reduce_scatter_start(%dw0) {owners=[0], rank=1, ranks=4, shapes=["[4,8]"]}
//          %r1 = reduce_scatter_wait(%b0) {...}
//          reduce_scatter_wait(%b1) {...}
//          %norm, %applied = optimizer(%r1) {params=["w0", "w1"], grads_elsewhere=["w0"], rank=1, ...}
//
// A bucket holds gradients of one dtype, in the order in which backward makes them, and is begun as
// soon as its last one is there; one that is full begins another. Waits are behind all gradients, in
// the order of the starts: as late as their first reader, the check of all gradients or an update.
// So unscaling, the finite check, norms and clipping see what all ranks see, and decide alike.
//
// Every step of a data parallel job has a reduction behind the last node that can fault, if need be
// one of no gradient: each carries word of a rank whose step has failed, which ends it on all ranks.
// The step that sums the gradients of a micro-batch (accumulate-gradients) has that one alone, the one that
// updates by them reduces the sums: once per window. Flags that scalers keep over a window are all ranks' then.
//
// requires:   autodiff, scale-losses and accumulate-gradients ran.
// guarantees: no `data_parallel` marker is left. Of one rank nothing else changes. The order of starts
//             and waits follows from the graph alone, so equal graphs exchange in the same order.
// never:      reduces what `gradient` markers give, which is the user's.
// order:      after accumulate-gradients, before insert-optimizers.
// stats:      buckets, gradients, bytes
// errors:     InvalidArgument: two `data_parallel` markers. Unimplemented: shard_optimizer with an optimizer
//             whose losses have different scalers.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeInsertAllReduce();

}  // namespace halftone::passes
