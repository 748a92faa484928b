#include "halftone/tools/support/html_page.h"

#include <map>

#include "halftone/graph/ir/text.h"
#include "halftone/passes/rewrite/graph_phase.h"
#include "halftone/tools/support/cost_report.h"
#include "halftone/tools/support/memory_report.h"
#include "halftone/tools/support/node_look.h"
#include "halftone/tools/support/page_data.h"
#include "halftone/tools/support/page_template.h"

namespace halftone::tools {
namespace {

using Positions = std::map<const ir::Node*, int>;

const char* KindName(const ir::Node& node) {
  switch (KindOf(node)) {
    case NodeKind::kCast:
      return "cast";
    case NodeKind::kLow:
      return "low";
    case NodeKind::kF32:
      return "f32";
    case NodeKind::kOther:
      break;
  }
  return "other";
}

Json NodeJson(const ir::Node& node, passes::Phase phase, const Positions& positions) {
  ir::TextOptions brief;
  brief.constant_files = true;  // large constants by name only
  const std::string state = StateName(node);
  Json json = {{"id", node.id()},
               {"name", node.name()},
               {"path", node.path()},
               {"label", state.empty() ? "%" + node.name() : state},
               {"op", node.op().name},
               {"scope", node.scope()},
               {"phase", Name(phase)},
               {"kind", KindName(node)},
               {"isState", IsState(node)},
               {"text", ir::Print(node, brief)},
               {"location", node.location.line > 0 ? node.location.ToString() : ""},
               {"pass", node.provenance.pass},
               {"from", node.provenance.from},
               {"types", Json::array()},
               {"inputs", Json::array()},
               {"returns", Json::array()},
               {"flops", 0},
               {"bytes", 0}};
  for (int i = 0; i < node.num_outputs(); ++i) {
    json["types"].push_back(node.output_type(i).ToString());
  }
  for (const ir::Value& v : node.inputs()) {
    json["inputs"].push_back({positions.at(v.node), v.index});
  }
  if (node.amp.decided) {
    json["amp"] = {{"class", ir::Name(node.amp.amp_class)}, {"reason", node.amp.reason}};
  }
  return json;
}

Json NodesJson(const ir::Graph& graph, const Positions& positions) {
  const std::vector<passes::Phase> phases = passes::PhasesOf(graph);
  Json nodes = Json::array();
  for (const auto& node : graph.nodes()) {
    nodes.push_back(NodeJson(*node, phases[nodes.size()], positions));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::Output& output = graph.outputs()[i];
    nodes[positions.at(output.value.node)]["returns"].push_back(
        output.name.empty() ? "#" + std::to_string(i) : output.name);
  }
  return nodes;
}

Json MemoryJson(const MemoryReport& report, const Positions& positions) {
  Json json = {{"planned", report.planned},
               {"arena", report.arena_bytes},
               {"peak", report.peak < 0 ? Json() : Json(report.peak)},
               {"outside",
                {{"inputs", report.input_bytes},
                 {"constants", report.constant_bytes},
                 {"variables", report.variable_bytes},
                 {"outputs", report.output_bytes}}},
               {"steps", Json::array()},
               {"held", Json::array()}};
  for (const MemoryStep& step : report.steps) {
    json["steps"].push_back({{"node", positions.at(step.node)}, {"live", step.live}});
  }
  for (const MemoryHolder& holder : report.held_at_peak) {
    json["held"].push_back({{"node", positions.at(holder.value.node)},
                            {"value", holder.value.ToString()},
                            {"type", holder.value.type().ToString()},
                            {"bytes", holder.bytes}});
  }
  return json;
}

Json AmpJson(const passes::AmpReport& report, const ir::Graph& graph, const Positions& positions) {
  std::map<std::string, int> by_path;
  for (const auto& node : graph.nodes()) by_path[node->path()] = positions.at(node.get());
  Json json = {{"summary", passes::Summary(report)}, {"rows", Json::array()}};
  for (const passes::AmpReportRow& row : report.rows) {
    const auto node = by_path.find(row.node);
    json["rows"].push_back({{"node", node == by_path.end() ? Json() : Json(node->second)},
                            {"path", row.node},
                            {"dtype", Name(row.dtype)},
                            {"low", IsLow(row.dtype)},
                            {"class", ir::Name(row.amp_class)},
                            {"why", row.why},
                            {"saved", row.bytes_saved},
                            {"casts", row.casts},
                            {"castBytes", row.cast_bytes}});
  }
  return json;
}

}  // namespace

std::string ToHtml(const ir::Graph& graph, const passes::AmpReport& amp) {
  Positions positions;
  for (const auto& node : graph.nodes()) {
    positions.emplace(node.get(), static_cast<int>(positions.size()));
  }
  Json data = {{"graph", graph.name()},
               {"nodes", NodesJson(graph, positions)},
               {"memory", MemoryJson(MakeMemoryReport(graph), positions)},
               {"amp", AmpJson(amp, graph, positions)}};
  const CostReport cost = MakeCostReport(graph);
  data["cost"] = {
      {"flops", cost.total.flops}, {"bytes", cost.total.bytes}, {"lowFlops", cost.low_flops}};
  for (const CostRow& row : cost.rows) {
    Json& node = data["nodes"][positions.at(row.node)];
    node["flops"] = row.cost.flops;
    node["bytes"] = row.cost.bytes;
  }
  return FillPage(kGraphPageTemplate, data);
}

}  // namespace halftone::tools
