// Kernels of reduce_scatter_start, reduce_scatter_wait, all_gather_start and all_gather_wait on host memory.
#pragma once

#include <memory>

#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Errors: FailedPrecondition: a graph for another number of ranks than this job has, or for another rank.
// Of one rank nothing is exchanged, whatever the job.
absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceScatterStart(const ir::Node& node);
absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceScatterWait(const ir::Node& node);
absl::StatusOr<std::unique_ptr<Kernel>> MakeAllGatherStart(const ir::Node& node);
absl::StatusOr<std::unique_ptr<Kernel>> MakeAllGatherWait(const ir::Node& node);

}  // namespace halftone::kernels
