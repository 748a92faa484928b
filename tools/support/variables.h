// Variables of a graph file, from checkpoints and to them.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/runtime/variable_store.h"

namespace halftone::tools {

struct LoadedVariables {
  uint64_t run_count = 0;          // of the next step; random masks follow it
  std::vector<std::string> notes;  // for the user: what either side lacks
};

// Gives the variables of `lowered` the values of a checkpoint. Those that it lacks stay unknown to
// `store` and will start from their initialisers. Errors: those of ReadCheckpoint; InvalidArgument
// (a dtype or shape that differs).
absl::StatusOr<LoadedVariables> LoadVariables(const std::string& path, const ir::Graph& lowered,
                                              runtime::VariableStore& store);

// Errors: those of WriteCheckpoint. Requires: every variable has a value.
absl::Status SaveVariables(const std::string& path, const runtime::VariableStore& store,
                           uint64_t run_count);

}  // namespace halftone::tools
