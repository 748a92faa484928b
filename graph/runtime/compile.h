// Lower and Compile: from a traced graph to the one that runs on a device, and to an executable.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/ir/target.h"
#include "halftone/graph/runtime/executable.h"
#include "halftone/passes/pass_manager.h"

namespace halftone::runtime {

// What passes had to say of a graph; also after an error.
struct PassReport {
  std::vector<std::string> notes;
  std::map<std::string, std::string> unmatched_entries;  // PassContext::unmatched_entries
  std::string summary;                                   // PassManager::Summary
};

// Takes a graph as traced to the one that runs on `target`: the whole pipeline, as Compile runs it.
// `own_passes` are those of the program; `report` and `progress` may be null. Errors: those of
// passes::RunPipeline.
absl::Status Lower(ir::Graph& graph, const ir::Target& target,
                   const passes::PassManagerOptions& options = {}, PassReport* report = nullptr,
                   const std::vector<passes::OwnPass>& own_passes = {},
                   passes::Progress* progress = nullptr);

struct CompileOptions {
  Device device;
  uint64_t seed = 0;        // of initial values
  std::string dump_dir;     // text after each pass that changed the graph; empty: none
  std::string dump_name;    // distinguishes executables of one graph in that folder
  std::string dump_remark;  // ends each of those texts, as a comment
  std::vector<std::string>* notes = nullptr;  // what passes had to say; may be null
  // PassContext::unmatched_entries; null: they are notes.
  std::map<std::string, std::string>* unmatched_entries = nullptr;
  std::vector<passes::OwnPass> own_passes;  // of the program, run in the pipeline
  bool every_stage = false;                 // a line on standard error for each pass
};

// The description of a device that passes and kernels agree on. Errors: those of kernels::OpenCuda.
absl::StatusOr<std::unique_ptr<ir::Target>> TargetOf(const Device& device);

// Lowers `graph`, selects kernels and plans memory. Errors: what a pass says about
// the graph (InvalidArgument), Unimplemented for a node no kernel runs, ResourceExhausted.
absl::StatusOr<std::unique_ptr<Executable>> Compile(std::unique_ptr<ir::Graph> graph,
                                                    const CompileOptions& options,
                                                    VariableStore& store,
                                                    std::shared_ptr<Arena> arena);

// Working memory of the step that `traced` describes if it ran without mixed precision and without
// a memory budget, but for what kernels need for themselves. Runs the pipeline. Errors: those of
// Compile.
absl::StatusOr<int64_t> ArenaBytesInF32(const ir::Graph& traced, const Device& device,
                                        const std::vector<passes::OwnPass>& own_passes);

}  // namespace halftone::runtime
