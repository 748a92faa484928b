// One reverse accumulation: from the gradients of some losses to the gradients of wanted values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

struct Seed {
  ir::Value loss;
  ir::Value gradient;  // of the loss's type
};

// A value by identity that survives edits: node id and output index.
using ValueKey = std::pair<int64_t, int>;
inline ValueKey KeyOf(ir::Value v) { return {v.node->id(), v.index}; }

// Values through which a gradient flows: float, depending on a wanted value through differentiable
// ops only, in a node that some loss depends on.
std::set<ValueKey> GradientPath(const ir::Graph& graph, const std::vector<ir::Value>& losses,
                                const std::vector<ir::Value>& wanted);

// Nodes on the path that have a decomposition but no gradient: to be decomposed before the sweep.
std::vector<ir::Node*> WithoutGradient(const ir::Graph& graph, const std::set<ValueKey>& path);

// Appends the gradient nodes. The result maps wanted values to their gradients; a value that no
// loss depends on is absent. Contributions are summed by `add` in the order of the nodes that made
// them. Requires: the graph is sorted; WithoutGradient is empty. Errors: Unimplemented, for a
// second derivative that an op does not have; Internal, if a record's gradient has another type
// than the operand.
absl::StatusOr<std::map<ValueKey, ir::Value>> SweepBack(ir::Graph& graph,
                                                        const std::vector<Seed>& seeds,
                                                        const std::vector<ir::Value>& wanted);

}  // namespace halftone::passes
