// What each node of a graph computes and moves in a step, by the op records: what
// `halftone_dump --cost` prints.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

struct CostRow {
  const ir::Node* node = nullptr;
  ir::Cost cost;
  bool low = false;  // an operand or a result is 16-bit
};

struct CostReport {
  // Nodes that compute or move something, in node order. Nodes that only give bytes another type
  // (reshape) do neither.
  std::vector<CostRow> rows;
  ir::Cost total;
  double low_flops = 0;  // of nodes with low
};

// The report points into `graph`.
CostReport MakeCostReport(const ir::Graph& graph);

// Columns: node, op, flops, share, bytes, share; most flops first; then the total.
std::string ToText(const CostReport& report);
// {"flops", "bytes", "low_flops", "nodes": [{"node", "op", "flops", "bytes", "flops_share",
//  "bytes_share", "low"}]} in node order; shares are of 1.
std::string ToJson(const CostReport& report);

}  // namespace halftone::tools
