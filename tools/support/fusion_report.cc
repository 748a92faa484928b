#include "halftone/tools/support/fusion_report.h"

#include <vector>

#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/json_text.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

// Values that no longer travel through memory: written once, read once.
int64_t BytesSaved(const passes::FusionGroup& group) {
  int64_t bytes = 0;
  for (const ir::Node* node : group.nodes) bytes += 2 * node->output_type().num_bytes();
  return bytes - 2 * group.nodes.back()->output_type().num_bytes();
}

std::string Names(const passes::FusionGroup& group) {
  std::string names;
  for (const ir::Node* node : group.nodes) names += (names.empty() ? "" : " ") + node->path();
  return names;
}

}  // namespace

absl::StatusOr<FusionReport> MakeFusionReport(const ir::Graph& traced, const ir::Target& target) {
  if (!target.FusesElementwise()) return FailedPrecondition(target.name(), " fuses nothing");
  if (passes::FindMarker(traced, "no_fusion") != nullptr) {
    return FailedPrecondition("graph @", traced.name(), " asks for none, by `no_fusion`");
  }
  FusionReport report;
  report.graph = traced.Clone();
  passes::PassManagerOptions options;
  options.stop_after = "split-batch-norms";
  HT_RETURN_IF_ERROR(runtime::Lower(*report.graph, target, options));
  report.fusion = passes::FindFusion(*report.graph, target);
  return report;
}

std::string ToText(const FusionReport& report) {
  std::vector<std::vector<std::string>> groups = {{">saved", "result", "one node"}};
  int64_t saved = 0;
  for (const passes::FusionGroup& group : report.fusion.groups) {
    const int64_t bytes = BytesSaved(group);
    saved += bytes;
    groups.push_back({FormatBytes(static_cast<double>(bytes)),
                      group.nodes.back()->output_type().ToString(), Names(group)});
  }
  std::vector<std::vector<std::string>> apart = {{"kept apart", "read by", "because it"}};
  for (const passes::KeptApart& pair : report.fusion.apart) {
    apart.push_back({pair.node->path(), pair.reader->path(), pair.why});
  }
  std::string text = Concat("fusion of @", report.graph->name(), ": ", report.fusion.groups.size(),
                            " groups; ", FormatBytes(static_cast<double>(saved)),
                            " a step are neither written nor read again\n");
  if (groups.size() > 1) text += "\n" + FormatTable(groups);
  if (apart.size() > 1) text += "\n" + FormatTable(apart);
  return text;
}

std::string ToJson(const FusionReport& report) {
  Json groups = Json::array(), apart = Json::array();
  for (const passes::FusionGroup& group : report.fusion.groups) {
    Json nodes = Json::array();
    for (const ir::Node* node : group.nodes) nodes.push_back(node->path());
    groups.push_back({{"nodes", nodes},
                      {"type", group.nodes.back()->output_type().ToString()},
                      {"bytes_saved", BytesSaved(group)}});
  }
  for (const passes::KeptApart& pair : report.fusion.apart) {
    apart.push_back(
        {{"node", pair.node->path()}, {"reader", pair.reader->path()}, {"why", pair.why}});
  }
  return Dump(Json{{"graph", report.graph->name()}, {"groups", groups}, {"apart", apart}});
}

}  // namespace halftone::tools
