#include "halftone/tools/support/cost_report.h"

#include <algorithm>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/tools/support/json_text.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

bool TouchesLow(const ir::Node& node) {
  for (const ir::Value& v : node.inputs()) {
    if (IsLow(v.dtype())) return true;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsLow(node.output_type(i).dtype)) return true;
  }
  return false;
}

double Share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

CostReport MakeCostReport(const ir::Graph& graph) {
  CostReport report;
  for (const auto& node : graph.nodes()) {
    if (passes::IsStorageAlias(*node)) continue;
    const ir::Cost cost = ir::CostOf(*node);
    if (cost.flops == 0 && cost.bytes == 0) continue;
    report.rows.push_back({node.get(), cost, TouchesLow(*node)});
    report.total.flops += cost.flops;
    report.total.bytes += cost.bytes;
    if (report.rows.back().low) report.low_flops += cost.flops;
  }
  return report;
}

std::string ToText(const CostReport& report) {
  std::vector<CostRow> rows = report.rows;
  std::stable_sort(rows.begin(), rows.end(), [](const CostRow& a, const CostRow& b) {
    return a.cost.flops != b.cost.flops ? a.cost.flops > b.cost.flops : a.cost.bytes > b.cost.bytes;
  });
  std::vector<std::vector<std::string>> table = {
      {"node", "op", ">flops", ">share", ">bytes", ">share"}};
  for (const CostRow& row : rows) {
    table.push_back({row.node->path(), row.node->op().name, FormatCount(row.cost.flops),
                     FormatShare(row.cost.flops, report.total.flops), FormatBytes(row.cost.bytes),
                     FormatShare(row.cost.bytes, report.total.bytes)});
  }
  return FormatTable(std::move(table)) + "total: " + FormatCount(report.total.flops) + " flops, " +
         FormatShare(report.low_flops, report.total.flops) +
         " of them in nodes with 16-bit values; " + FormatBytes(report.total.bytes) +
         " read and written\n";
}

std::string ToJson(const CostReport& report) {
  Json json = {{"flops", report.total.flops},
               {"bytes", report.total.bytes},
               {"low_flops", report.low_flops},
               {"nodes", Json::array()}};
  for (const CostRow& row : report.rows) {
    json["nodes"].push_back({{"node", row.node->path()},
                             {"op", row.node->op().name},
                             {"flops", row.cost.flops},
                             {"bytes", row.cost.bytes},
                             {"flops_share", Share(row.cost.flops, report.total.flops)},
                             {"bytes_share", Share(row.cost.bytes, report.total.bytes)},
                             {"low", row.low}});
  }
  return Dump(json);
}

}  // namespace halftone::tools
