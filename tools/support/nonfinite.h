// The first node of a step whose value is not finite, for halftone_run.
#pragma once

#include <string>
#include <vector>

#include "halftone/tools/support/step.h"

namespace halftone::tools {

// What a search over steps found.
struct NonFiniteStep {
  int step = -1;     // from 0; -1: all are finite
  std::string text;  // runtime::ToString of the node
};

// Looks at every value of `steps` steps of `lowered`, until one is not finite where it matters (see
// runtime::NonFiniteNode). Variables are then as they were before that step; `run_count` is its
// own. Errors: those of running.
absl::StatusOr<NonFiniteStep> FindNonFiniteStep(const ir::Graph& lowered, const Device& device,
                                                uint64_t seed, runtime::VariableStore& store,
                                                const std::vector<Tensor>& feeds, int steps,
                                                uint64_t* run_count);

}  // namespace halftone::tools
