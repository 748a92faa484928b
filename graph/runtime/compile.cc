#include "halftone/graph/runtime/compile.h"

#include <utility>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu_target.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/pipeline.h"
#include "halftone/passes/progress.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::runtime {
namespace {

absl::Status LowerFor(ir::Graph& graph, const CompileOptions& options, passes::Progress* progress) {
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, TargetOf(options.device));
  passes::PassManagerOptions manager;
  if (!options.dump_dir.empty()) manager.dump_dir = options.dump_dir + "/" + options.dump_name;
  manager.dump_remark = options.dump_remark;
  PassReport report;
  HT_RETURN_IF_ERROR(Lower(graph, *target, manager, &report, options.own_passes, progress));
  if (options.unmatched_entries != nullptr) {
    *options.unmatched_entries = std::move(report.unmatched_entries);
  } else {
    for (const auto& [entry, note] : report.unmatched_entries) report.notes.push_back(note);
  }
  if (options.notes != nullptr) {
    options.notes->insert(options.notes->end(), report.notes.begin(), report.notes.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Lower(ir::Graph& graph, const ir::Target& target,
                   const passes::PassManagerOptions& options, PassReport* report,
                   const std::vector<passes::OwnPass>& own_passes, passes::Progress* progress) {
  const kernels::ReferenceEvaluator evaluator;
  passes::PassContext context;
  context.target = &target;
  context.evaluator = &evaluator;
  context.progress = progress;
  const absl::Status status = passes::RunPipeline(
      graph, context, options, report == nullptr ? nullptr : &report->summary, own_passes);
  if (report != nullptr) {
    report->notes = std::move(context.notes);
    report->unmatched_entries = std::move(context.unmatched_entries);
  }
  return status;
}

absl::StatusOr<std::unique_ptr<ir::Target>> TargetOf(const Device& device) {
  switch (device.kind) {
    case Device::Kind::kCpu:
      return kernels::MakeCpuTarget();
    case Device::Kind::kReference:
      return kernels::MakeReferenceTarget();
    case Device::Kind::kCuda: {
      HT_ASSIGN_OR_RETURN(kernels::DeviceBackend * backend, kernels::OpenCuda(device.index));
      return backend->MakeTarget(kernels::KernelRegistry::Global());
    }
  }
  return Internal("no such kind of device");
}

absl::StatusOr<std::unique_ptr<Executable>> Compile(std::unique_ptr<ir::Graph> graph,
                                                    const CompileOptions& options,
                                                    VariableStore& store,
                                                    std::shared_ptr<Arena> arena) {
  HT_RETURN_IF_ERROR(UseNumThreads());
  passes::ProgressOptions progress_options;
  progress_options.every_stage = options.every_stage;
  passes::Progress progress("@" + graph->name(), progress_options);
  HT_RETURN_IF_ERROR(LowerFor(*graph, options, &progress));
  progress.Begin("kernels, initial values and memory", graph->nodes().size());
  auto executable =
      Executable::Create(std::move(graph), options.device, options.seed, store, std::move(arena));
  progress.End();
  return executable;
}

absl::StatusOr<int64_t> ArenaBytesInF32(const ir::Graph& traced, const Device& device,
                                        const std::vector<passes::OwnPass>& own_passes) {
  const std::unique_ptr<ir::Graph> graph = traced.Clone();
  for (const char* marker : {"amp", "memory_budget"}) {
    graph->Remove(passes::FindMarkers(*graph, marker));
  }
  CompileOptions options;
  options.device = device;
  options.own_passes = own_passes;
  HT_RETURN_IF_ERROR(LowerFor(*graph, options, /*progress=*/nullptr));
  return passes::PlanMemory(*graph).arena_bytes;
}

}  // namespace halftone::runtime
