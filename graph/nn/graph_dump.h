// Dumps of a compiled step (config.dump_dir, HALFTONE_DUMP): where they go, and what its first run
// starts from, written beside the text of its graph.
#pragma once

#include <string>

#include "halftone/core/status.h"
#include "halftone/graph/nn/compiled_step.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::nn {

// The folder for dumps of all steps; empty: none.
std::string DumpDir(const StepConfig& config);
// The folder in it for the next step that is compiled. Graphs may share a name.
std::string NextDumpName(const std::string& dir, const std::string& graph);

// Variables and inputs, as files that halftone_run reads.
absl::Status DumpStart(const CompiledStep& step, const runtime::StateDict& variables);

}  // namespace halftone::nn
