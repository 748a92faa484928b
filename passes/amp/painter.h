// Painter: decides for every node of an AmpGraph whether it runs in 16 bit or in f32, and why.
//
// The steps are those of TensorFlow's auto_mixed_precision (grappler), on one paint per node:
//   1. allow     eligible nodes of class allow turn 16-bit
//   2. deny      spreads from denied nodes through infer nodes, and through clear nodes that lead
//                to an infer or denied node; it stops at allow. A range problem spreads through
//                every clear node. And upwards, from operands whose rounding a denied node enlarges
//   3. between   infer and clear nodes on a path from an allowed node to an allowed node turn
//                16-bit
//   4. follow    (bf16 only) infer nodes fed by 16-bit values and parameters turn 16-bit
//   5. clear     clear nodes fed by 16-bit values only, or read by 16-bit nodes only, turn 16-bit
//   6. groups    a node whose same-dtype operands are not all 16-bit (parameters and constants do
//                not count) turns back, and so do clear nodes that lose their neighbours, and
//                running sums of what is f32 (ir::AmpTrait::running_sum); to a fixed point
//   7. observers follow their inputs
// Each step is a fixed point that does not depend on the order of nodes, and where a reason names
// one of several nodes, it names the first by name.
//
// A node is eligible if the target has kernels in the low type for its op and for the ops of its
// gradient.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ir/target.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/value_ranges.h"

namespace halftone::passes {

struct Painting {
  std::vector<ir::AmpDecision> decisions;  // per vertex
  std::vector<std::string> notes;          // range problems, wishes that the target cannot grant
};

Painting Paint(const AmpGraph& graph, const ValueRanges& ranges, DType low,
               const ir::Target& target);

}  // namespace halftone::passes
