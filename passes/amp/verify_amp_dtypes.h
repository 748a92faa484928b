// verify-amp-dtypes: checks that the graph is what the precision decisions say. Changes nothing.
//
// Checks, for every node with a decision:
//   * a 16-bit node reads and gives its dtype on main ports and f32 on ports that its op keeps f32
//   * an f32 node reads no value that mixed precision made 16-bit
// and for the casts of the precision passes: floats only, at most one per (value, dtype), and none
// undoes another.
//
// requires: insert-amp-casts ran; a graph without decisions passes.
// order:    after insert-amp-casts, and again after trim-amp-islands.
// errors:   Internal, naming the node and the port: a bug in a trait or in a pass.
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeVerifyAmpDTypes();

// The checks alone.
absl::Status VerifyAmpDTypes(const ir::Graph& graph);

}  // namespace halftone::passes
