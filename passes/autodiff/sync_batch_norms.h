// sync-batch-norms: in a job of several ranks, batch norms take the statistics of all ranks' samples.
//
// before:  data_parallel() {ranks=4, sync_batch_norm=true}
//          %y, ..., %new_mean, %new_var = batch_norm(%x, %gamma, %beta, %running_mean, %running_var)
// after:   %own = mean(%x), %own_var = mean((%x - %own)^2)               (per channel)
//          %mean = all_reduce(%own)
//          %var = all_reduce(%own_var + (%own - %mean)^2)
//          %y = batch_norm_inference(%x, %gamma, %beta, %mean, %var)
//          %new_mean, %new_var: as batch_norm has them, of as many samples as all ranks have
//
// Sums of squares about a mean of all are those about the own mean and what the two are apart: nothing
// cancels, whatever the mean. What flows back through the statistics is autodiff's, through
// all_reduce to all ranks.
//
// requires:   every rank has as many samples, which nn::Graph compares.
// guarantees: the marker stays, for insert-all-reduce.
// never:      changes a batch norm whose running mean is no variable: what group and instance norms are
//             made of, whose statistics are those of a sample.
// order:      before insert-amp-casts and autodiff.
// stats:      synced
// source:     Chan, Golub, LeVeque: "Algorithms for computing the sample variance", 1983 (pairwise);
//             https://pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeSyncBatchNorms();

}  // namespace halftone::passes
