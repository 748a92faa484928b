// The decision table of mixed precision: what halftone_dump --amp prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

struct AmpReportRow {
  std::string node;  // path: scope and name
  // Whether mixed precision decides about it; not about sources (an embedding), and what it leaves
  // alone: casts of the user's, 16-bit and f64 values, whole numbers.
  bool is_decided = true;
  std::string op;
  DType dtype = DType::kF32;
  ir::AmpClass amp_class = ir::AmpClass::kDeny;
  std::string why;          // the reason chain, without the dtype in front
  int64_t bytes_saved = 0;  // what the node moves less than in f32, a step
  int casts = 0;           // casts of the precision passes made on its account: into a 16-bit node,
                           // out of one; a shared cast is paid by its first reader
  int64_t cast_bytes = 0;  // read and written by them
};

struct AmpReport {
  std::vector<AmpReportRow> rows;  // every node of the forward graph with an operand, in node order
  // Nodes: those that are decided. f8_nodes are among the low ones.
  int low_nodes = 0, f8_nodes = 0, f32_nodes = 0, casts = 0;
  int64_t bytes_saved = 0, cast_bytes = 0;
};

// The path under which the table has a node: its own, or that of the product for which one on 8-bit
// operands stands.
std::string PathInAmpReport(const ir::Node& node);

// Of a graph on which insert-amp-casts ran; gradients inherit, so the table lists the forward
// nodes. A graph without decisions gives an empty report.
AmpReport MakeAmpReport(const ir::Graph& graph);

// Columns: node, dtype, class, saved, casts, why; then the summary line.
std::string ToText(const AmpReport& report);
// "12 of 17 nodes in 16 bit, 5 casts move 3.2 KiB, 1.2 MiB saved".
std::string Summary(const AmpReport& report);

}  // namespace halftone::passes
