// What the kernels that exchange data between ranks share: copies into and out of their buffers, on the
// host.
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::distributed {
class Communicator;
}

namespace halftone::kernels {

// Copies `count` elements, rounded to nearest where `to_dtype` is narrower.
void CopyAs(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);

// This process's view of the job; null for a node of one rank. Errors: FailedPrecondition: a node for
// another number of ranks than this job has, or for another rank.
absl::StatusOr<distributed::Communicator*> CommunicatorFor(const ir::Node& node);

}  // namespace halftone::kernels
