// What `fuse` makes one node, and why other elementwise nodes stay apart: what `halftone_dump
// --fusion` prints.
#pragma once

#include <memory>
#include <string>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"
#include "halftone/passes/rewrite/fusion_groups.h"

namespace halftone::tools {

struct FusionReport {
  std::unique_ptr<ir::Graph> graph;  // as `fuse` finds it
  passes::Fusion fusion;             // nodes of `graph`
};

// Takes `traced` through the pipeline for `target` up to `fuse`. Errors: those of the passes;
// FailedPrecondition for a device that fuses nothing, and a graph that asks for none.
absl::StatusOr<FusionReport> MakeFusionReport(const ir::Graph& traced, const ir::Target& target);

std::string ToText(const FusionReport& report);
std::string ToJson(const FusionReport& report);

}  // namespace halftone::tools
