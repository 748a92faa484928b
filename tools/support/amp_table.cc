#include "halftone/tools/support/amp_table.h"

#include <algorithm>

#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/quantise_matmuls.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/json_text.h"

namespace halftone::tools {

absl::StatusOr<passes::AmpReport> DecideAmp(const ir::Graph& graph, const ir::Target& target) {
  const bool has_marker = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                      [](const auto& node) { return passes::IsOp(*node, "amp"); });
  if (!has_marker) return passes::MakeAmpReport(graph);
  const std::unique_ptr<ir::Graph> decided = graph.Clone();
  passes::PassManager manager;
  manager.Add(passes::MakeInsertAmpCasts());
  manager.Add(passes::MakeTrimAmpIslands());
  manager.Add(passes::MakeQuantiseMatmuls());
  passes::PassContext context;
  context.target = &target;
  HT_RETURN_IF_ERROR(manager.Run(*decided, context));
  return passes::MakeAmpReport(*decided);
}

namespace {

Json ToJson(const CastsOfStep& casts) {
  const auto traffic = [](const CastTraffic& t) {
    return Json{{"casts", t.casts}, {"bytes", t.bytes}};
  };
  return {{"weights", traffic(casts.weights)},
          {"activations", traffic(casts.activations)},
          {"gradients", traffic(casts.gradients)}};
}

}  // namespace

std::string ToJson(const passes::AmpReport& report, const std::optional<CastReport>& casts) {
  Json rows = Json::array();
  for (const passes::AmpReportRow& row : report.rows) {
    rows.push_back({{"node", row.node},
                    {"op", row.op},
                    {"dtype", Name(row.dtype)},
                    {"class", row.is_decided ? Name(row.amp_class) : ""},
                    {"why", row.why},
                    {"bytes_saved", row.bytes_saved},
                    {"casts", row.casts},
                    {"cast_bytes", row.cast_bytes}});
  }
  Json json = {{"rows", rows},
               {"low_nodes", report.low_nodes},
               {"f32_nodes", report.f32_nodes},
               {"casts", report.casts},
               {"bytes_saved", report.bytes_saved},
               {"cast_bytes", report.cast_bytes}};
  if (casts.has_value()) {
    json["step_casts"] = {
        {"naive", ToJson(casts->naive)}, {"step", ToJson(casts->step)}, {"kept", casts->kept}};
  }
  return Dump(json);
}

}  // namespace halftone::tools
