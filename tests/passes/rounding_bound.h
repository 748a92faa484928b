// RoundingBound: how far the results of a graph after insert-amp-casts may lie from those in f32, by
// adding up the roundings of its nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/ir/evaluator.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/tests/support/graph_runner.h"

namespace halftone::testing {

// Of every node: its outputs.
using NodeValues = std::map<std::string, std::vector<Tensor>>;

// The values of all nodes of a graph without markers and commits, by node name.
NodeValues AllValues(const ir::Graph& graph, const GraphFeeds& feeds,
                     const ir::Evaluator& evaluator);

// A bound on |value in `amp` - value in `f32`| for every element of output 0 of every node of `amp`,
// a graph of the ops of RandomGraph and what insert-amp-casts made of `f32`, by node name; infinite
// where a divisor or the argument of a logarithm may become 0. `values`: AllValues of `f32`.
NodeValues RoundingBounds(const ir::Graph& amp, const ir::Graph& f32, const NodeValues& values,
                          const ir::Evaluator& evaluator);

}  // namespace halftone::testing
