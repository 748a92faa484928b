// Kernels of all_reduce_start, all_reduce_wait and all_reduce on host memory, for the devices that have it.
#pragma once

#include <memory>

#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Errors: FailedPrecondition: a graph for another number of ranks than this job has. Of one rank
// nothing is exchanged, whatever the job.
absl::StatusOr<std::unique_ptr<Kernel>> MakeAllReduceStart(const ir::Node& node);
absl::StatusOr<std::unique_ptr<Kernel>> MakeAllReduceWait(const ir::Node& node);
absl::StatusOr<std::unique_ptr<Kernel>> MakeAllReduce(const ir::Node& node);

}  // namespace halftone::kernels
