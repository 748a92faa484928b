// Values that are made anew: which, from when on, and the edit of the graph that does it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

struct Repeat {
  int from = 0;  // readers at this position and later read the repetition
  std::string why;
};
// By id of the node and number of the output.
using Repeats = std::map<std::pair<int64_t, int>, Repeat>;

// Adds a node for each that has a value in `repeats`, named "<name>.again", before its first
// reader, and sorts. It reads repetitions where its operands have them by then. What nothing reads
// any more is removed. Requires: a sorted graph; none of the values is from a source, and their
// nodes have no effect.
absl::Status RepeatValues(ir::Graph& graph, const Repeats& repeats);

// The graph as it would be if nothing were repeated, but for what was removed then. Error: those of
// Graph::Sort.
absl::StatusOr<std::unique_ptr<ir::Graph>> WithoutRepeats(const ir::Graph& graph);

}  // namespace halftone::passes
