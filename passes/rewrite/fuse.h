// fuse: trees of elementwise ops as one node, which reads and writes memory once.
//
// Before:      %s = add(%x, %y) : f32[64,64]
//              %r = relu(%s) : f32[64,64]
// After:       %fused = fused(%x, %y) {body="relu(add(%0, %1))"} : f32[64,64]
// Requires:    PassContext::target, which decides whether and what to fuse. Nodes have their dtypes
//              and layouts.
// Guarantees:  the same bits: each op of a body rounds as it did alone. What is in a body was read
//              by its reader there alone, and had its shape and layout. A result of fewer than
//              kLeastFusedElements is left alone, as it stays in the cache anyway.
// Never:       moves a random op or one with an effect; takes in a cast of a variable, which is kept
//              from step to step; makes a step hold more bytes, for which see fusion_groups.h;
//              crosses the border of a module with recompute().
// Order:       after widen-operands, when kernels are settled; before what goes by the order of nodes
//              and plans memory.
// Stats:       "groups", "nodes" (that are in them), "kept_apart" (pairs of elementwise nodes with a
//              reason against it, see `halftone_dump --fusion`).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeFuse();

// Adds the marker `no_fusion`: every op stays a node of its own, with the same values, for what explains
// them or looks at each.
void ForbidFusion(ir::Graph& graph);

}  // namespace halftone::passes
