// Reasons for which kernels of every device refuse a node: what KernelCandidate::supports asks.
// Each returns OK, or Unimplemented saying what is in the way.
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::kernels {

// Every input lies in row-major order. For kernels that read positions from row-major numbers.
absl::Status PlainInputs(const ir::Node& node);

// Every input and every output does.
absl::Status PlainThroughout(const ir::Node& node);

// No channels in blocks, which the CPU's kernels alone know.
absl::Status NoChannelBlocks(const ir::Node& node);

// The first output lies as the first input does, so that flat arrays correspond.
absl::Status LayoutOfInput(const ir::Node& node);

// All inputs and outputs have one layout.
absl::Status OneLayout(const ir::Node& node);

// The graph does not say that 16-bit operands are widened. For kernels that compute on them.
absl::Status NotWidened(const ir::Node& node);

}  // namespace halftone::kernels
