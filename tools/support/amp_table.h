// The mixed-precision decisions of a graph, whether or not they have been taken.
#pragma once

#include <optional>
#include <string>

#include "halftone/graph/ir/target.h"
#include "halftone/passes/amp/report.h"
#include "halftone/tools/support/cast_report.h"

namespace halftone::tools {

// The decisions that the nodes carry; for a graph with an `amp` marker, those that the passes take
// on a copy of it, for `target`. Empty if there are neither. Errors: what the passes say.
absl::StatusOr<passes::AmpReport> DecideAmp(const ir::Graph& graph, const ir::Target& target);

// {"rows": [{"node": ..., "op", "dtype", "class", "why", "bytes_saved", "casts", "cast_bytes"}],
//  "low_nodes", "f32_nodes", "casts", "bytes_saved", "cast_bytes"}; with `casts` also
//  "step_casts": {"naive": {"weights": {"casts", "bytes"}, "activations", "gradients"}, "step",
//  "kept"}
std::string ToJson(const passes::AmpReport& report,
                   const std::optional<CastReport>& casts = std::nullopt);

}  // namespace halftone::tools
