#include "halftone/passes/amp/report.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>

#include "halftone/core/printable.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/island_cost.h"

namespace halftone::passes {
namespace {

// Inputs, variables and constants have none.
bool HasRow(const ir::Node& node) {
  return node.num_inputs() > 0 && node.num_outputs() > 0 && !node.amp.reason.empty();
}

// A 16-bit node pays for casts into it, then for casts out of it.
const ir::Node* PayerOf(const ir::Node& cast, const ir::UseMap& uses) {
  if (IsLow(cast.output_type().dtype)) {
    for (const auto& use : uses.uses(cast.output())) {
      if (use.node->amp.decided) return use.node;
    }
  }
  return cast.input(0).node;
}

std::string WithoutDType(const ir::AmpDecision& amp) {
  const std::string prefix = Concat(Name(amp.dtype), ": ");
  return amp.reason.rfind(prefix, 0) == 0 ? amp.reason.substr(prefix.size()) : amp.reason;
}

std::string Bytes(int64_t bytes) {
  std::ostringstream out;
  out << std::setprecision(1) << std::fixed;
  if (bytes < 1024) return Concat(bytes, " B");
  if (bytes < 1024 * 1024) {
    out << static_cast<double>(bytes) / 1024 << " KiB";
  } else {
    out << static_cast<double>(bytes) / (1024 * 1024) << " MiB";
  }
  return out.str();
}

}  // namespace

AmpReport MakeAmpReport(const ir::Graph& graph) {
  AmpReport report;
  const ir::UseMap uses(graph);
  std::map<const ir::Node*, size_t> row_of;
  for (const auto& node : graph.nodes()) {
    if (!HasRow(*node)) continue;
    AmpReportRow row;
    row.node = node->path();
    row.op = node->op().name;
    row.is_decided = node->amp.decided && !node->op().amp.cast_output_only;
    row.dtype = node->amp.decided ? node->amp.dtype : node->output_type().dtype;
    row.amp_class = node->amp.amp_class;
    row.why = WithoutDType(node->amp);
    if (row.is_decided) {
      const bool low = IsLow(row.dtype);
      if (low) row.bytes_saved = static_cast<int64_t>(SavedBytes(*node));
      report.bytes_saved += row.bytes_saved;
      ++(low ? report.low_nodes : report.f32_nodes);
    }
    row_of[node.get()] = report.rows.size();
    report.rows.push_back(std::move(row));
  }
  for (const auto& node : graph.nodes()) {
    if (!IsAmpCast(*node)) continue;
    const auto bytes = static_cast<int64_t>(CastBytes(node->output_type()));
    ++report.casts;
    report.cast_bytes += bytes;
    auto row = row_of.find(PayerOf(*node, uses));
    if (row == row_of.end()) continue;
    ++report.rows[row->second].casts;
    report.rows[row->second].cast_bytes += bytes;
  }
  return report;
}

std::string Summary(const AmpReport& report) {
  return Concat(report.low_nodes, " of ", report.low_nodes + report.f32_nodes, " nodes in 16 bit, ",
                report.casts, report.casts == 1 ? " cast moves " : " casts move ",
                Bytes(report.cast_bytes), ", ", Bytes(report.bytes_saved), " saved");
}

std::string ToText(const AmpReport& report) {
  std::vector<std::vector<std::string>> table = {
      {"node", "dtype", "class", "saved", "casts", "why"}};
  for (const AmpReportRow& row : report.rows) {
    table.push_back({Printable(row.node), Name(row.dtype),
                     row.is_decided ? Name(row.amp_class) : "-",
                     row.bytes_saved == 0 ? "-" : Bytes(row.bytes_saved),
                     row.casts == 0 ? "-" : Concat(row.casts, " (", Bytes(row.cast_bytes), ")"),
                     Printable(row.why)});
  }
  std::vector<size_t> widths(table[0].size());
  for (const auto& row : table) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : table) {
    for (size_t c = 0; c + 1 < row.size(); ++c) {
      out += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    }
    out += row.back() + "\n";
  }
  return out + Summary(report) + "\n";
}

}  // namespace halftone::passes
