// The casts between f32 and 16 bit that a step with mixed precision makes, beside those that it would
// make if every operand were cast where it is read: what `halftone_dump --amp` prints below its table.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"

namespace halftone::tools {

struct CastTraffic {
  int64_t casts = 0;
  int64_t bytes = 0;  // read and written
};

// By what is cast.
struct CastsOfStep {
  CastTraffic weights;      // parameters and buffers
  CastTraffic activations;  // values of the forward pass, inputs among them
  CastTraffic gradients;    // values of the backward pass and of the updates
  CastTraffic total() const;
};

// What a step of a lowered graph makes. Those that keep-low-weights keeps are not part of it.
CastsOfStep CountCasts(const ir::Graph& lowered);

struct CastReport {
  // With the same decisions: a cast for every operand of every node that is read in another
  // precision, and the gradient of each, none shared, left out, absorbed or kept.
  CastsOfStep naive;
  CastsOfStep step;  // as it runs
  int64_t kept = 0;  // casts of weights that stay from step to step, so that none runs in it
};

// Of a graph as traced, lowered for `target`. Errors: those of the passes; FailedPrecondition where
// the graph has no `amp` marker.
absl::StatusOr<CastReport> MakeCastReport(const ir::Graph& traced, const ir::Target& target);

// Columns: casts a step, one at each operand, bytes, as it runs, bytes; a row for each kind, and one
// for all.
std::string ToText(const CastReport& report);

}  // namespace halftone::tools
