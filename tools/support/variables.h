// Variables of a graph file, from files of state and to them: checkpoints, and by their endings .npz
// and .safetensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/ir/model.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::tools {

struct LoadedVariables {
  uint64_t run_count = 0;          // of the next step; random masks follow it
  std::vector<std::string> notes;  // for the user: what either side lacks
};

// Gives the variables of `lowered` the values of a file. Those that it lacks stay unknown to `store`
// and will start from their initialisers. Errors: those of the reader; InvalidArgument (a dtype or
// shape that differs).
absl::StatusOr<LoadedVariables> LoadVariables(const std::string& path, const ir::Graph& lowered,
                                              runtime::VariableStore& store);

// What such a file holds, by name. Errors: those of the reader.
absl::StatusOr<runtime::StateDict> ReadState(const std::string& path);

// Gives the variables of `model` the values of such a file, where it has them. Errors: those of the
// reader.
absl::Status AddState(const std::string& path, ir::Model& model);

// Gives the variables of `lowered` that `store` does not know the values of a model. Errors:
// ResourceExhausted.
absl::Status GiveVariables(const std::map<std::string, Tensor>& values, const ir::Graph& lowered,
                           runtime::VariableStore& store);

// Errors: those of the writer. Requires: every variable has a value.
absl::Status SaveVariables(const std::string& path, const runtime::VariableStore& store,
                           uint64_t run_count);

}  // namespace halftone::tools
