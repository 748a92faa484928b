#include "halftone/tools/support/amp_table.h"

#include <algorithm>

#include "halftone/passes/insert_amp_casts.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/rewrite.h"
#include "halftone/passes/trim_amp_islands.h"

namespace halftone::tools {

absl::StatusOr<passes::AmpReport> DecideAmp(const ir::Graph& graph, const ir::Target& target) {
  const bool has_marker = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                      [](const auto& node) { return passes::IsOp(*node, "amp"); });
  if (!has_marker) return passes::MakeAmpReport(graph);
  const std::unique_ptr<ir::Graph> decided = graph.Clone();
  passes::PassManager manager;
  manager.Add(passes::MakeInsertAmpCasts());
  manager.Add(passes::MakeTrimAmpIslands());
  passes::PassContext context;
  context.target = &target;
  HT_RETURN_IF_ERROR(manager.Run(*decided, context));
  return passes::MakeAmpReport(*decided);
}

}  // namespace halftone::tools
