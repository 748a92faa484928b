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

// Of a product on 8-bit operands, whose result is of 16 or 32.
int64_t SavedInF8(const ir::Node& node) {
  int64_t saved = 0;
  const auto add = [&saved](const ir::ValueType& type) {
    saved += type.num_elements() * static_cast<int64_t>(sizeof(float) - SizeOf(type.dtype));
  };
  for (const ir::Value& v : node.inputs()) add(v.type());
  add(node.output_type());
  return saved;
}

}  // namespace

std::string PathInAmpReport(const ir::Node& node) {
  if (!IsF8(node.amp.dtype)) return node.path();
  return Concat(node.scope(), node.scope().empty() ? "" : "/", node.provenance.from);
}

AmpReport MakeAmpReport(const ir::Graph& graph) {
  AmpReport report;
  const ir::UseMap uses(graph);
  std::map<const ir::Node*, size_t> row_of;
  for (const auto& node : graph.nodes()) {
    if (!HasRow(*node)) continue;
    AmpReportRow row;
    row.node = PathInAmpReport(*node);
    row.op = node->op().name;
    row.is_decided = node->amp.decided && !node->op().amp.cast_output_only;
    row.dtype = node->amp.decided ? node->amp.dtype : node->output_type().dtype;
    row.amp_class = node->amp.amp_class;
    row.why = WithoutDType(node->amp);
    if (row.is_decided) {
      const bool in_f8 = IsF8(row.dtype), low = in_f8 || IsLow(row.dtype);
      report.f8_nodes += in_f8;
      if (low) row.bytes_saved = static_cast<int64_t>(in_f8 ? SavedInF8(*node) : SavedBytes(*node));
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
  const std::string in_f8 =
      report.f8_nodes == 0 ? "" : Concat(report.f8_nodes, " of them on 8-bit operands, ");
  return Concat(report.low_nodes, " of ", report.low_nodes + report.f32_nodes, " nodes in 16 bit, ",
                in_f8, report.casts, report.casts == 1 ? " cast moves " : " casts move ",
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
