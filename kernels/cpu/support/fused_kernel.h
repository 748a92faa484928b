// FusedKernel: a `fused` node (graph/ops/support/fused_body.h) as the kernels of its ops, called tile
// by tile, so that what lies between them stays in the first cache. Each is the kernel that the op
// has alone: every element gets the bits of the unfused graph.
#pragma once

#include <functional>
#include <memory>

#include "halftone/core/status.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Makes the kernel of a step.
using MakeStepKernel = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node& step)>;

// Errors: those of `make`.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedKernel(const ir::Node& node,
                                                        const MakeStepKernel& make);

}  // namespace halftone::kernels
