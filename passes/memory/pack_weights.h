// pack-weights: weights that stay as they are are held in the order in which kernels read them.
//
// Before:      %h = linear(%x, %w)
// After:       %h = linear(%x, %w) {packed=true}
// Requires:    PassContext::target, which decides; nodes have their dtypes and layouts.
// Guarantees:  `packed` of every node that has the attribute says whether its input 1 is a weight of a graph
//              that writes no variable, else one that is not trainable and that no commit writes, a
//              cast of one that is going to be kept, or a constant, or one of these
//              reshaped, and whether that pays: where each element of it meets fewer than
//              kPackedPositions others, so that putting it in order is a share of the node's time.
//              Whoever runs the step makes the kernel's copy again after any write of the parameter.
//              Values change by the order of sums at most, where a library adds otherwise.
// Never:       adds a node: the order is a kernel's own, and whoever runs the step holds it.
// Order:       before what plans memory: a kernel that packs may take another workspace.
// Stats:       "packed".
#pragma once

#include <cstdint>
#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

// Rows of a product, or positions of a convolution's output.
inline constexpr int64_t kPackedPositions = 1024;

std::unique_ptr<Pass> MakePackWeights();

// Adds the marker `no_packing`: kernels read weights as they lie, and hold no copy.
void ForbidPacking(ir::Graph& graph);

}  // namespace halftone::passes
