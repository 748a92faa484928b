// GraphConfig: what a graph may be told.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halftone/passes/amp/policy.h"
#include "halftone/passes/pass.h"

namespace halftone::nn {

// Training of one model by all processes of a job, each on its part of every batch.
struct DataParallel {
  // Of gradients that travel together. Small ones start early and cost a message each.
  int64_t bucket_bytes = int64_t{25} << 20;
  // Over the ranks: kMean for losses that are means over a batch, kSum for sums.
  enum class Reduction : uint8_t { kMean, kSum } reduction = Reduction::kMean;
  // In which gradients travel: f32, or half as many bytes in f16 or bf16. Sums are f32 either way.
  DType wire_dtype = DType::kF32;
  // Whether batch norms that keep running statistics take those of all ranks' samples, as PyTorch's
  // SyncBatchNorm does: two short exchanges for each in forward, and two in backward.
  bool sync_batch_norm = false;
  // Whether each rank keeps the optimizers' state of some of the parameters alone, and updates those: 1/n of the
  // state's memory and of the updates' time on each of n ranks. Every step has the bits that it has without.
  // state_dict() and EmaScope are calls of all ranks then, as save_checkpoint is. Gradients of
  // losses with different grad scalers are an error.
  bool shard_optimizer = false;
  friend bool operator==(const DataParallel&, const DataParallel&) = default;
};

// What a compiled step depends on. May be changed at any time: a call under another configuration
// than that of the executables at hand compiles anew, for every signature, and one under an earlier
// configuration finds its executable again.
class StepConfig {
 public:
  // Mixed precision. By default off. The low dtype is policy.dtype, or chosen for the device: bf16
  // where it is fast, else none, with a note (see Graph::notes). DType::kF8: bf16, and the matrix
  // products of training steps on operands scaled to 8 bits (docs/guide/mixed_precision.md).
  // Example: config.enable_amp(true, {.dtype = DType::kF16, .deny = {"head/*"}});
  void enable_amp(bool on, amp::Policy policy = {}) {
    amp_enabled_ = on;
    amp_policy_ = std::move(policy);
  }
  bool amp_enabled() const { return amp_enabled_; }
  const amp::Policy& amp_policy() const { return amp_policy_; }

  // A pass of the program's own, which the pipeline of every compilation runs at its stage, behind
  // those added before. It is verified, named by errors and dumped as every pass is. The object is
  // shared by all graphs that it is added to. Errors (of the call that compiles): what the pass
  // gives; a null pass; a name that is no part of a file name, or that of another pass.
  // Example: config.add_pass(passes::Stage::kForward, std::make_shared<FuseSoftsign>());
  void add_pass(passes::Stage stage, std::shared_ptr<passes::Pass> pass) {
    own_passes_.push_back({stage, std::move(pass)});
  }
  const std::vector<passes::OwnPass>& own_passes() const { return own_passes_; }

  // Splits the batch of each training call into `count` micro-batches, one after the other: inputs
  // along dimension 0, which must divide; those without dimensions go to each. The parameters are
  // updated once, by the mean of the micro-batches' gradients, so the loss should be a mean. A call
  // takes the working memory of a micro-batch. Its outputs are joined along dimension 0, a single
  // number becomes a vector of `count`. Evaluations are not split. Default: 1. Named as in OneFlow.
  void set_gradient_accumulation_steps(int count) { gradient_accumulation_steps_ = count; }
  int gradient_accumulation_steps() const { return gradient_accumulation_steps_; }
  // Updates the parameters at every `count`-th training call, by the mean over the window: over all
  // micro-batches since the last update. Graph::flush() ends a window early. Default: 1.
  //
  // Either way the loss scale stays over the window, gradients are summed in the type of their
  // parameters, unscaled, and one that is not finite skips the update. Norms, clipping, schedules,
  // averages and the scaler's steps are those of updates; norm statistics and random masks those of
  // micro-batches. The sums are part of the state while a window is under way: of a job's ranks each has
  // its own in state_dict(), and save_checkpoint() writes those of all.
  void accumulate_calls(int count) { accumulated_calls_ = count; }
  int accumulated_calls() const { return accumulated_calls_; }
  // Whether a training call may leave the update to a later one, or is split.
  bool accumulates() const { return gradient_accumulation_steps_ > 1 || accumulated_calls_ > 1; }

  // Every training call becomes one part of a step that all ranks of the job make (distributed::Init,
  // docs/guide/distributed.md): gradients are reduced over the ranks before they are unscaled,
  // checked, clipped and used, so that parameters, scales and skipped steps are the same on all. All ranks
  // make the same calls, from one thread at a time. A call that compiles compares what the ranks have
  // built, and gives all of them the state of rank 0. What else differs by rank: inputs, outputs, random masks, norm statistics. A step
  // that fails on one rank fails on all, with that rank's error. save_checkpoint writes on rank 0,
  // and is to be called on all. In a job of one rank nothing changes. Gradients of `sparse`
  // embeddings are dense. Errors (of the call that compiles): FailedPrecondition, naming the rank
  // that differs from rank 0 and in what; InvalidArgument: bucket_bytes under 1, another wire_dtype.
  // Example: config.data_parallel({.wire_dtype = DType::kBF16});
  void data_parallel(DataParallel options = {}) { data_parallel_ = options; }
  const std::optional<DataParallel>& data_parallel_options() const { return data_parallel_; }

  // OneFlow's names for what every step does where the device can: the parameters are updated in few
  // launches, and an update unscales, widens and clips its gradient itself. Here for programs that
  // say so; whatever they say, there is nothing to switch.
  void allow_fuse_model_update_ops(bool /*on*/ = true) {}
  void allow_fuse_cast_scale(bool /*on*/ = true) {}

  // Whether outputs of build() keep the low dtype that mixed precision gave them. Off: they have
  // the dtype that build() saw.
  bool amp_low_outputs = false;
  // Whether products of f32 may round their operands to TF32, which keeps 10 bits after the point:
  // several times faster on a GPU's matrix units. A device without them makes no use of it.
  bool allow_tf32 = false;
  // Whether every run adds in the same order, so that equal steps give equal bits. false: a library
  // may take convolutions that are faster and do not.
  bool deterministic = true;
  // Whether convolutions of 16-bit operands may round their weight gradients to that dtype before they
  // become f32, as under PyTorch's autocast. A GPU's library has many more ways to make those. It costs
  // digits (f16 keeps 11 significant bits, bf16 8; sums stay f32) and in f16 range: what is under 2^-25
  // becomes 0, and what is over 65520 infinite, at which a grad scaler skips the step. Off, they leave
  // their kernels in f32.
  bool allow_low_weight_gradients = false;
  // Whether neighbouring elementwise ops become one node, which reads and writes memory once. The
  // results keep their bits; off, every op is a node of its own in dumps and profiles.
  bool allow_fusion = true;
  // Whether the weights of an evaluation, and frozen ones of a training step, are also held in the orders in
  // which the device's libraries read them, where putting them in order is a share of each call's time: at
  // batches of few images or rows. Takes their bytes once more for each order, forward and of frozen layers
  // backward, which graphs and signatures that read the same order share. After a write it is made again.
  bool pack_weights = true;
  // Whether norm statistics and other buffers move in a step that a grad scaler or skip_nonfinite
  // skips.
  bool update_buffers_on_skip = false;
  // Whether OptimizerHandle::grad_norm works also for optimizers without grad scaler and clipping,
  // at the price of reading every gradient once more. With either of them it always works.
  bool track_grad_norm = false;
  // The largest L2 norm of the gradients of all optimizers together, each unscaled by its own
  // scale; 0 does not clip. An optimizer that skips the step does not count. Where the norm is not
  // finite and nothing skips the step, the gradients are applied as they are. Not beside an
  // optimizer's own clip_norm.
  double clip_grad_norm = 0;
  // Bytes of working memory that a compiled step may take, those of its variables, inputs and
  // outputs aside: what Graph::arena_bytes gives of a graph of one step. Where the step takes more,
  // values of its forward pass are dropped and computed once more for the backward pass, those
  // first that cost the least time for the bytes; the results keep their bits, and halftone_dump
  // names what is computed again. 0: no limit. Errors (of the call that compiles):
  // ResourceExhausted, with the smallest budget that was found to do; InvalidArgument below 0.
  int64_t memory_budget = 0;
  // Whether a step that holds much for its backward pass computes again what takes next to no time
  // (activation functions, norms, casts, moves) instead of holding it. That is done where it saves
  // 15 % of the working memory and 32 MiB at least, for 1.25 % of its time at most, by a count of
  // flops and bytes. Results keep their bits. Beside a memory_budget it makes no
  // difference.
  bool recompute_cheap_values = true;
  // Of the initial parameter values and of all random masks. Parameters that have a value keep it.
  uint64_t seed = 0;
  // Folder for what a numeric bug is reproduced from, with a folder in it for each signature: the
  // text of the graph as traced (00_input.txt) and after each pass that changed it; and, before the
  // first run, variables.ckpt with the value of every variable and in0.npy, ... with the inputs.
  // halftone_run reads them. Empty: the environment variable HALFTONE_DUMP, if set. The files take
  // as much room as the variables.
  std::string dump_dir;

  // Part of every call: allocates nothing.
  friend bool operator==(const StepConfig&, const StepConfig&) = default;

 private:
  bool amp_enabled_ = false;
  amp::Policy amp_policy_;
  std::vector<passes::OwnPass> own_passes_;
  int gradient_accumulation_steps_ = 1;
  int accumulated_calls_ = 1;
  std::optional<DataParallel> data_parallel_;
};

class GraphConfig : public StepConfig {
 public:
  // Executables that are kept, one for each signature, mode and configuration; the least recently
  // used goes first. Values under 1 count as 1. An executable costs its kernels; the arena is
  // shared.
  int cache_size = 8;

  friend bool operator==(const GraphConfig&, const GraphConfig&) = default;
};

}  // namespace halftone::nn
