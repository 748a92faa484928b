// Ranks by NCCL, where this was built with it.
#pragma once

#include <memory>

#include "halftone/kernels/cuda/runtime/ranks.h"

namespace halftone::cuda {

// Ranks::Join.
absl::StatusOr<std::shared_ptr<Ranks>> JoinByNccl(distributed::Communicator& world);

}  // namespace halftone::cuda
