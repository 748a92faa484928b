#include "halftone/graph/runtime/compile.h"

#include <utility>

#include "halftone/kernels/cpu_target.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/assign_layouts.h"
#include "halftone/passes/autodiff.h"
#include "halftone/passes/clean_up_casts.h"
#include "halftone/passes/decompose_unsupported.h"
#include "halftone/passes/eliminate_common_subexpressions.h"
#include "halftone/passes/eliminate_dead_code.h"
#include "halftone/passes/fold_constants.h"
#include "halftone/passes/insert_amp_casts.h"
#include "halftone/passes/insert_optimizers.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/scale_losses.h"
#include "halftone/passes/simplify.h"
#include "halftone/passes/trim_amp_islands.h"
#include "halftone/passes/update_scalers.h"
#include "halftone/passes/verify_amp_dtypes.h"

namespace halftone::runtime {
namespace {

void AddCanonicalise(passes::PassManager& manager) {
  std::vector<std::unique_ptr<passes::Pass>> group;
  group.push_back(passes::MakeFoldConstants());
  group.push_back(passes::MakeSimplify());
  group.push_back(passes::MakeEliminateCommonSubexpressions());
  group.push_back(passes::MakeEliminateDeadCode());
  manager.AddGroup("canonicalise", std::move(group));
}

absl::Status RunPasses(ir::Graph& graph, passes::PassContext& context,
                       const passes::PassManagerOptions& options) {
  passes::PassManager manager(options);
  AddCanonicalise(manager);
  manager.Add(passes::MakeInsertAmpCasts());
  manager.Add(passes::MakeVerifyAmpDTypes());
  manager.Add(passes::MakeTrimAmpIslands());
  manager.Add(passes::MakeVerifyAmpDTypes());
  manager.Add(passes::MakeAutodiff());
  manager.Add(passes::MakeScaleLosses());
  manager.Add(passes::MakeInsertOptimizers());
  manager.Add(passes::MakeUpdateScalers());
  manager.Add(passes::MakeDecomposeUnsupported());
  AddCanonicalise(manager);
  manager.Add(passes::MakeCleanUpCasts());
  manager.Add(passes::MakeAssignLayouts());
  manager.Add(passes::MakeEliminateCommonSubexpressions());
  manager.Add(passes::MakeEliminateDeadCode());
  return manager.Run(graph, context);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Target>> TargetOf(const Device& device) {
  switch (device.kind) {
    case Device::Kind::kCpu:
      return kernels::MakeCpuTarget();
    case Device::Kind::kReference:
      return kernels::MakeReferenceTarget();
    case Device::Kind::kCuda:
      break;
  }
  return Unimplemented("device ", device.ToString(), ": this build has no CUDA kernels; expected ",
                       "cpu or reference");
}

absl::StatusOr<std::unique_ptr<Executable>> Compile(std::unique_ptr<ir::Graph> graph,
                                                    const CompileOptions& options,
                                                    VariableStore& store,
                                                    std::shared_ptr<Arena> arena) {
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, TargetOf(options.device));
  passes::PassContext context;
  context.target = target.get();
  const kernels::ReferenceEvaluator evaluator;
  context.evaluator = &evaluator;
  passes::PassManagerOptions manager;
  if (!options.dump_dir.empty()) manager.dump_dir = options.dump_dir + "/" + options.dump_name;
  HT_RETURN_IF_ERROR(RunPasses(*graph, context, manager));
  if (options.notes != nullptr) {
    options.notes->insert(options.notes->end(), context.notes.begin(), context.notes.end());
  }
  return Executable::Create(std::move(graph), options.device, options.seed, store,
                            std::move(arena));
}

}  // namespace halftone::runtime
