// A graph as one HTML page that loads nothing: `halftone_dump FILE --format html`.
#pragma once

#include <string>

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/amp/report.h"

namespace halftone::tools {

// The graph laid out by phase (forward, backward, update) and module, with search, the table of
// precision decisions `amp`, memory over time, and cost. The page is made of the files of page/;
// it works on the data that is embedded in it as JSON. Whatever strings the graph has, they are
// text to the browser: in the data no "<" occurs, and the script writes text nodes only.
//
// The fragment "#q=words" of the page's address searches for nodes.
// Requires: a sorted, verified graph.
std::string ToHtml(const ir::Graph& graph, const passes::AmpReport& amp);

}  // namespace halftone::tools
