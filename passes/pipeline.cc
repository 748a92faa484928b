#include "halftone/passes/pipeline.h"

#include <algorithm>

#include "halftone/passes/amp/apply_numerics.h"
#include "halftone/passes/amp/clean_up_casts.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/quantise_matmuls.h"
#include "halftone/passes/amp/round_biases.h"
#include "halftone/passes/amp/scale_losses.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/amp/update_scalers.h"
#include "halftone/passes/amp/verify_amp_dtypes.h"
#include "halftone/passes/amp/widen_operands.h"
#include "halftone/passes/autodiff/accumulate_gradients.h"
#include "halftone/passes/autodiff/autodiff.h"
#include "halftone/passes/autodiff/insert_all_reduce.h"
#include "halftone/passes/autodiff/insert_optimizers.h"
#include "halftone/passes/autodiff/sync_batch_norms.h"
#include "halftone/passes/layout/assign_layouts.h"
#include "halftone/passes/layout/block_channels.h"
#include "halftone/passes/layout/merge_copies.h"
#include "halftone/passes/layout/read_in_place.h"
#include "halftone/passes/memory/advance_updates.h"
#include "halftone/passes/memory/group_updates.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/memory/pack_weights.h"
#include "halftone/passes/memory/rematerialise.h"
#include "halftone/passes/progress.h"
#include "halftone/passes/rewrite/decompose_unsupported.h"
#include "halftone/passes/rewrite/eliminate_common_subexpressions.h"
#include "halftone/passes/rewrite/eliminate_dead_code.h"
#include "halftone/passes/rewrite/fold_constants.h"
#include "halftone/passes/rewrite/fuse.h"
#include "halftone/passes/rewrite/pool_first.h"
#include "halftone/passes/rewrite/simplify.h"
#include "halftone/passes/rewrite/split_batch_norms.h"

namespace halftone::passes {
namespace {

std::vector<std::unique_ptr<Pass>> Canonicalisation() {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(MakeFoldConstants());  // first: the others compare and test constants
  passes.push_back(MakeSimplify());       // makes more nodes equal
  passes.push_back(MakeEliminateCommonSubexpressions());
  passes.push_back(MakeEliminateDeadCode());  // last: removes what the others left unread
  return passes;
}

// What layouts may leave: equal relayouts, and values only they replaced. No folding and no
// simplification: rules of simplify know plain layouts only.
std::vector<std::unique_ptr<Pass>> Tidying() {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(MakeEliminateCommonSubexpressions());
  passes.push_back(MakeEliminateDeadCode());
  return passes;
}

// In the order of AddPipeline; the passes of a group once.
constexpr struct {
  const char* name;
  std::unique_ptr<Pass> (*make)();
} kPasses[] = {
    {"fold-constants", &MakeFoldConstants},
    {"simplify", &MakeSimplify},
    {"eliminate-common-subexpressions", &MakeEliminateCommonSubexpressions},
    {"eliminate-dead-code", &MakeEliminateDeadCode},
    {"sync-batch-norms", &MakeSyncBatchNorms},
    {"insert-amp-casts", &MakeInsertAmpCasts},
    {"verify-amp-dtypes", &MakeVerifyAmpDTypes},
    {"trim-amp-islands", &MakeTrimAmpIslands},
    {"pool-first", &MakePoolFirst},
    {"autodiff", &MakeAutodiff},
    {"scale-losses", &MakeScaleLosses},
    {"accumulate-gradients", &MakeAccumulateGradients},
    {"insert-all-reduce", &MakeInsertAllReduce},
    {"insert-optimizers", &MakeInsertOptimizers},
    {"update-scalers", &MakeUpdateScalers},
    {"apply-numerics", &MakeApplyNumerics},
    {"decompose-unsupported", &MakeDecomposeUnsupported},
    {"clean-up-casts", &MakeCleanUpCasts},
    {"round-biases", &MakeRoundBiases},
    {"quantise-matmuls", &MakeQuantiseMatmuls},
    {"assign-layouts", &MakeAssignLayouts},
    {"read-in-place", &MakeReadInPlace},
    {"merge-copies", &MakeMergeCopies},
    {"block-channels", &MakeBlockChannels},
    {"widen-operands", &MakeWidenOperands},
    {"split-batch-norms", &MakeSplitBatchNorms},
    {"fuse", &MakeFuse},
    {"pack-weights", &MakePackWeights},
    {"advance-updates", &MakeAdvanceUpdates},
    {"rematerialise", &MakeRematerialise},
    {"group-updates", &MakeGroupUpdates},
    {"keep-low-weights", &MakeKeepLowWeights},
};

// Adds the program's passes of a stage. Whether there are any.
bool AddOwn(PassManager& manager, const std::vector<OwnPass>& own, Stage stage) {
  bool any = false;
  for (const OwnPass& pass : own) {
    if (pass.stage != stage) continue;
    manager.AddOwn(pass.pass);
    any = true;
  }
  return any;
}

absl::Status CheckOwn(const std::vector<OwnPass>& own) {
  const std::vector<std::string> taken = PassNames();
  for (const OwnPass& pass : own) {
    if (pass.pass == nullptr) return InvalidArgument("add_pass: got no pass");
    const std::string name = pass.pass->name();
    const bool is_word =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
    if (name.empty() || !is_word) {
      return InvalidArgument("add_pass: pass \"", name, "\"; expected a name of a-z, 0-9, - and _");
    }
    if (std::find(taken.begin(), taken.end(), name) != taken.end()) {
      return InvalidArgument("add_pass: pass \"", name, "\"; the pipeline has one of that name");
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddPipeline(PassManager& manager, const std::vector<OwnPass>& own) {
  // Before precision is decided, so that equal computations get one decision. Casts that change no
  // type stay until then: they are the user's word on what is to be f32.
  manager.AddGroup("canonicalise", Canonicalisation());
  // After it, so that they find equal things equal. What they leave unread goes before precision is
  // decided, which asks who reads a value.
  if (AddOwn(manager, own, Stage::kForward)) {
    manager.AddGroup("canonicalise", Canonicalisation());
  }
  // Before precision is decided, which is to see what it makes, and before autodiff, which
  // differentiates it.
  manager.Add(MakeSyncBatchNorms());
  // Before autodiff: gradients follow the forward dtypes, the cast has a gradient, and no list of
  // gradient ops has to be kept in step with the forward ops.
  manager.Add(MakeInsertAmpCasts());
  // Right after the pass it checks; later passes may absorb the casts it looks for.
  manager.Add(MakeVerifyAmpDTypes());
  // After the rules of precision, since it may only undo what they allowed; before autodiff, which
  // would double every cast.
  manager.Add(MakeTrimAmpIslands());
  // The same rules hold after the trim.
  manager.Add(MakeVerifyAmpDTypes());
  // Once dtypes are final; before autodiff, which holds what a relu gives.
  manager.Add(MakePoolFirst());
  // Once dtypes are final.
  manager.Add(MakeAutodiff());
  // Needs the seeds that autodiff made. Drops scalers that are not needed before anything counts on
  // them.
  manager.Add(MakeScaleLosses());
  // Needs the gradients, and to know whether they are scaled. Before optimizers become updates, which
  // are another step's where it fires.
  manager.Add(MakeAccumulateGradients());
  // Once it is known what an update reads, gradients or their sums. Before unscaling, finite checks and
  // norms, which are then of what all ranks see.
  manager.Add(MakeInsertAllReduce());
  // Needs the gradients that updates are to read, and to know whether they are scaled.
  manager.Add(MakeInsertOptimizers());
  // Needs the finite flag of every optimizer.
  manager.Add(MakeUpdateScalers());
  // When the products of the backward pass are there. What passes make of them later is strict.
  manager.Add(MakeApplyNumerics());
  // When no marker is left, and before ops without a kernel go, which may be theirs.
  AddOwn(manager, own, Stage::kStep);
  // After autodiff: the gradient of the whole op is better than that of its parts. Before the
  // second canonicalisation, which cleans up after it and all of the above.
  manager.Add(MakeDecomposeUnsupported());
  manager.AddGroup("canonicalise", Canonicalisation());
  // When all readers of a gradient exist, and nothing unread hides that a cast is the only one.
  manager.Add(MakeCleanUpCasts());
  // After clean-up-casts, which goes by the ports that stay f32.
  manager.Add(MakeRoundBiases());
  // When products have their dtypes and their biases, and no gradient is left that nothing reads:
  // the state of a quantised value would keep it. Before layouts, which tidy up after it.
  manager.Add(MakeQuantiseMatmuls());
  // After everything that adds ops on activations, so that all get a layout together.
  manager.Add(MakeAssignLayouts());
  // When it is known which values are plain. Leaves transposes unread, which tidying removes.
  manager.Add(MakeReadInPlace());
  // Of what is still copied. Leaves nodes unread, too.
  manager.Add(MakeMergeCopies());
  // When it is known what is channels-last, and all copies are merged that would have been.
  manager.Add(MakeBlockChannels());
  manager.AddGroup("tidy", Tidying());
  // When operands have their dtypes and layouts, by which kernels accept or refuse them.
  manager.Add(MakeWidenOperands());
  // For the next one.
  manager.Add(MakeSplitBatchNorms());
  // When kernels are settled and nothing looks for elementwise ops by name any more. Before what goes
  // by the order of nodes, and plans what they hold.
  manager.Add(MakeFuse());
  // Before what plans memory, since kernels that pack take another workspace.
  manager.Add(MakePackWeights());
  // When nothing adds or moves a node that reads a variable, but for what follows.
  manager.Add(MakeAdvanceUpdates());
  // When nothing merges equal nodes any more, and a node has all that its kernel is chosen by: what
  // is computed twice then has the same bits.
  manager.Add(MakeRematerialise());
  // When no node comes, goes or changes its place any more: it joins neighbours.
  manager.Add(MakeGroupUpdates());
  // Looks at who reads what last, and at what the launches of updates write in place.
  manager.Add(MakeKeepLowWeights());
}

absl::Status RunPipeline(ir::Graph& graph, PassContext& context, const PassManagerOptions& options,
                         std::string* summary, const std::vector<OwnPass>& own) {
  HT_RETURN_IF_ERROR(CheckOwn(own));
  PassManager manager(options);
  AddPipeline(manager, own);
  Progress progress("@" + graph.name());
  Progress* const given = context.progress;
  if (given == nullptr) context.progress = &progress;
  const absl::Status status = manager.Run(graph, context);
  context.progress = given;
  if (summary != nullptr) *summary = manager.Summary();
  return status;
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const auto& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Pass>> MakePass(const std::string& name) {
  std::string known;
  for (const auto& pass : kPasses) {
    if (name == pass.name) return pass.make();
    known += (known.empty() ? "" : ", ") + std::string(pass.name);
  }
  return NotFound("pass \"", name, "\" is unknown; expected one of ", known);
}

}  // namespace halftone::passes
