// The pipeline: the one place that orders passes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/passes/pass_manager.h"

namespace halftone::passes {

// Adds every pass, in order, each for the reason given in pipeline.cc. What a graph does not ask
// for (no `amp` marker, no loss) passes do not touch, so one pipeline serves training and
// evaluation. `own` are passes of the program, run at their stages in this order. Requires: those
// that RunPipeline takes.
void AddPipeline(PassManager& manager, const std::vector<OwnPass>& own = {});

// Takes a graph as traced, or as read from a file, to one that memory planning and kernel selection
// can work on: no markers, every op runs on `context.target`. Notes for the user are left in
// context.notes. `summary`, if given, gets PassManager::Summary. Errors: as PassManager::Run;
// InvalidArgument for an own pass that is null, or whose name is no part of a file name or that of
// a pass of the pipeline.
absl::Status RunPipeline(ir::Graph& graph, PassContext& context,
                         const PassManagerOptions& options = {}, std::string* summary = nullptr,
                         const std::vector<OwnPass>& own = {});

// Single passes by name, for tools and golden tests. In the order of the pipeline.
std::vector<std::string> PassNames();
// Error: NotFound listing the names.
absl::StatusOr<std::unique_ptr<Pass>> MakePass(const std::string& name);

}  // namespace halftone::passes
