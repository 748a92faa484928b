// Runs whole graphs on the reference kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/evaluator.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::testing {

// What a step starts from: the graph's inputs and variables by name.
struct GraphFeeds {
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> variables;
};

struct GraphResults {
  std::vector<Tensor> outputs;
  std::map<std::string, Tensor> commits;  // new value of each committed variable
};

// Bounds of the random feeds: floats in [lo, hi), integers in ints_lo..ints_hi.
struct FeedRange {
  double lo = -2, hi = 2;
  int64_t ints_lo = 0, ints_hi = 1;
};

// Reproducible: a function of name, type and seed, so a graph gets the same feeds before and after
// a pass.
GraphFeeds RandomFeeds(const ir::Graph& graph, const FeedRange& range, uint64_t seed);

// Values of every node that outputs and commits depend on, in node order. `loss_seed` counts as
// one; any other marker is an error. Errors: NotFound (an input or variable without feed),
// Unimplemented (a marker), and those of the evaluator.
absl::StatusOr<GraphResults> RunGraph(const ir::Graph& graph, const GraphFeeds& feeds,
                                      const ir::Evaluator& evaluator);

// Whether RunGraph can run it: no marker but loss_seed is needed by outputs and commits.
bool HasMarkers(const ir::Graph& graph);

}  // namespace halftone::testing
