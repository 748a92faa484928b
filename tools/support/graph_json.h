// A graph as JSON, for scripts.
#pragma once

#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

// {"name", "variables": [{"name", "type", "kind", "trainable", "init"}],
//  "nodes": [{"name", "op", "scope", "inputs": ["%x", "%h:1"], "types": ["f32[2]"], "text",
//             "location", "pass", "from", "amp": {"class", "dtype", "reason"}}],
//  "outputs": [{"name", "value"}]}
// "text" is the node's line in the text form. Keys that have nothing to say are absent.
std::string ToJson(const ir::Graph& graph);

}  // namespace halftone::tools
