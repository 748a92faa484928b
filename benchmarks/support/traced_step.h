// The graph of a workload's step, as build() describes it: nothing is computed, and no parameter gets
// a value.
#pragma once

#include <memory>
#include <string>

#include "halftone/benchmarks/support/workloads.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::benchmarks {

// The training step in the precision that `amp` says ("off", "bf16" or "f16"), tidied up, with its
// markers. Errors: those of SetPrecision and of build().
absl::StatusOr<std::unique_ptr<ir::Graph>> TraceStep(Workload& workload, const std::string& amp);

}  // namespace halftone::benchmarks
