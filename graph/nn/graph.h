// Graph: one training or evaluation step, traced once per input signature, compiled, and run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/device.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/ir/model.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/nn/handles.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/parameter_split.h"
#include "halftone/graph/nn/value.h"
#include "halftone/graph/runtime/load_options.h"
#include "halftone/graph/runtime/nonfinite_node.h"
#include "halftone/graph/runtime/state_lock.h"
#include "halftone/optim/grad_scaler.h"
#include "halftone/optim/optimizer.h"
#include "halftone/optim/reduce_on_plateau.h"

namespace halftone::kernels {
class Kernel;
}

namespace halftone::nn {

using StateDict = runtime::StateDict;
using LoadMismatch = runtime::LoadMismatch;
using LoadOptions = runtime::LoadOptions;
using LoadReport = runtime::LoadReport;
using NonFiniteNode = runtime::NonFiniteNode;

// Subclass it, own modules (or refer to modules that live longer), describe the step in build().
//
// Errors: constructors and build() never fail in place. The first mistake is returned by the first
// call.
//
// Thread-safety: once graphs are constructed, any threads may call them and their functions, those
// of their handles and of Parameter. A lock makes calls of one graph, and of graphs that share
// modules, wait for each other; others run side by side. Lock() holds it over several calls. Not
// covered: `config`, and what compiled_graph() points to. A graph may not be called inside its own
// build().
//
// fork(): the child may go on with all graphs that run on the CPU, and gets the parent's results.
// FailedPrecondition, naming fork, for a graph on an accelerator that the parent used, and for one
// that another thread was calling.
//
// Example:
//   class Model : public nn::Graph {
//    public:
//     Model() : fc_(4, 2) {
//       add_module("fc", fc_);
//       add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
//     }
//     nn::Values build(const nn::Values& in) override {
//       nn::Value loss = nn::cross_entropy(fc_(in[0]), in[1]);
//       loss.backward();
//       return {loss};
//     }
//     nn::Linear fc_;
//   };
//   Model model;
//   absl::StatusOr<std::vector<Tensor>> out = model({x, y});
class Graph {
 public:
  explicit Graph(std::string name = "graph");
  virtual ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Describes the step. Called once per input signature and modes (its own and its modules'); must
  // not depend on anything else that changes, and changes neither the graph nor its modules. In
  // evaluation mode backward() and the optimizers do nothing.
  virtual Values build(const Values& in) = 0;

  GraphConfig config;

  // Runs one step and gives the values that build() returned; they are the caller's. The first call
  // with a signature traces and compiles.
  // Errors: the first mistake of the constructor or of build(), with file and line; InvalidArgument
  // (a module or operand that does not fit); OutOfRange (an index or label of this batch; no
  // variable has changed); FailedPrecondition (too many skipped steps in a row).
  //
  // On an accelerator the call returns while the device works. Reading an output waits for it (no
  // step in between does), the inputs may be changed at once, and an error of the step comes from
  // synchronize() or from a later call, which then does not run its step; the outputs of the failed
  // one stay undefined.
  absl::StatusOr<std::vector<Tensor>> operator()(absl::Span<const Tensor> in);
  // The same into tensors of the caller, which must have the dtypes and shapes of the outputs.
  // After the first run of a signature it allocates nothing outside library calls.
  absl::Status Run(absl::Span<const Tensor> in, absl::Span<Tensor> out);
  // Traces and compiles without running. `in` gives dtypes and shapes; values are not read.
  absl::Status compile(absl::Span<const Tensor> in);

  // Makes calls and functions of this graph, and of those that share modules, by other threads wait
  // while it lives: to see several results of one step together. TryLock does not wait: check
  // held().
  runtime::StateLock Lock() const;
  runtime::StateLock TryLock() const;

  // Ends a window of accumulated gradients (see GraphConfig::accumulate_calls): updates the
  // parameters by the mean of the micro-batches that there are, however few. Nothing where there
  // are none. Errors: FailedPrecondition inside build(), and where nothing was compiled since the
  // gradients were loaded or a setting changed; those of a call that updates.
  absl::Status flush();
  // How many micro-batches wait for their update.
  uint64_t accumulated_micro_batches() const;

  // Waits for all calls; their first error that no call has told. On the CPU there is nothing to
  // wait for.
  absl::Status synchronize();

  // Where it runs. Default: CPU. State moves along: each device reads it where it was written last.
  // Errors (at the next call): a device that this build or machine lacks.
  void to(Device device, Loc loc = Loc::current());
  Device device() const;
  // Mode of the next calls. Each mode has executables of its own. In evaluation all modules
  // evaluate; in training each does as it was told, see Module::train and Module::freeze.
  void train(Loc loc = Loc::current());
  void eval(Loc loc = Loc::current());
  bool is_training() const;

  // State of all modules, optimizers and scalers by name: "fc1.weight",
  // "optimizer0.fc1.weight.exp_avg", "scaler0.scale", and "run_count", which random masks follow.
  // Tied parameters have all their names, which share one tensor, and state of an optimizer under
  // the first of them. Makes initial values that are missing. Under data_parallel.shard_optimizer all ranks
  // call it. Errors: those of the constructor, ResourceExhausted.
  absl::StatusOr<StateDict> state_dict();
  // Also before the first call: state of optimizers that is made by compiling is kept until then.
  // One name of tied parameters is enough. Errors: InvalidArgument listing what is missing,
  // unexpected or of another type, or names of one parameter that have different values; nothing
  // has changed then. With strict = false all but the last is only reported; so is always the state
  // of scalers, for states to pass between graphs with and without mixed precision. The optimizer
  // state of a parameter of another type starts anew; its count of applied steps is the state's.
  //
  // Example: load_state_dict(state, {.strict = false, .rename = {{"module.*", "*"}}})
  absl::StatusOr<LoadReport> load_state_dict(const StateDict& state, bool strict = true);
  absl::StatusOr<LoadReport> load_state_dict(const StateDict& state, const LoadOptions& options);
  // state_dict() and `metadata` (where the data stands, what the program wants back) in one file,
  // of which the last version stays as "<path>.previous"; whatever ends the program, one of the two
  // is complete. Under config.data_parallel all ranks call it and rank 0 writes; an error of its is
  // that of all. Errors: of state_dict() and runtime::WriteCheckpoint; the file is then as before.
  absl::Status save_checkpoint(const std::string& path,
                               const std::map<std::string, std::string>& metadata = {});
  // Errors: of runtime::ReadCheckpoint and load_state_dict(); nothing has changed then. A damaged
  // file is an error: runtime::ReadLatestCheckpoint falls back on the version before.
  absl::StatusOr<LoadReport> load_checkpoint(
      const std::string& path, bool strict = true,
      std::map<std::string, std::string>* metadata = nullptr);
  absl::StatusOr<LoadReport> load_checkpoint(
      const std::string& path, const LoadOptions& options,
      std::map<std::string, std::string>* metadata = nullptr);
  // What build() computes of inputs of these dtypes and shapes in evaluation, with copies of the
  // values that parameters and buffers have: to be converted (amp::ConvertModel), written
  // (nn::WriteModel) or run without this program. Compiles for evaluation; the mode stays. The
  // configuration's mixed precision is asked for in it, not decided. Errors: of compile().
  absl::StatusOr<ir::Model> inference_model(absl::Span<const Tensor> in);
  // The same as an ONNX model (see graph/onnx/onnx.h). The configuration's mixed precision is no part
  // of it: it is f32 where parameters are.
  // Errors: of compile() and onnx::WriteOnnx; the file is then as before.
  absl::Status export_onnx(const std::string& path, absl::Span<const Tensor> in);
  // Gives parameters and buffers that have no value yet their initial one, by config.seed.
  absl::Status initialize();

  // The scaler of set_grad_scaler, or the automatic one: a graph that lowers to f16 and has none
  // gets one when it is compiled for training, and a note. The handle may be taken before.
  ScalerHandle grad_scaler();
  // Whether the last training step was skipped by any optimizer; with accumulation of gradients the
  // last update, as in what follows.
  bool last_step_skipped() const;
  // L2 norm of the unscaled, unclipped gradients of all optimizers in the last training step;
  // infinite if one of them is. NaN before the first step, and where an optimizer has none (see
  // OptimizerHandle::grad_norm).
  double grad_norm() const;
  // The first parameter whose gradient was not finite in the last training step; "" if none, and
  // where nothing looks at the gradients: a grad scaler, skip_nonfinite, clipping by norm or
  // config.track_grad_norm does.
  std::string first_nonfinite_param() const;
  // The node at which the infinities and NaNs of a step on `in` began, in forward or backward;
  // nothing if outputs, gradients and new values are finite. Runs the step once more, kernel by
  // kernel, and looks at every value; nothing of it is kept: no state changes, no count moves.
  //
  // After a training step that was skipped it is that step, with the scale and the random masks
  // that it had, so with the same inputs bit for bit the same. (But what an optimizer that went on
  // has changed is as it is now, and with update_buffers_on_skip so are buffers; on an accelerator
  // the scale is the present one, unless max_consecutive_skips has each call wait for its step.)
  // Otherwise it is what a call would do now, in the mode of now. Too many skips in a row name the
  // node by themselves.
  // Errors: those of a call.
  absl::StatusOr<std::optional<NonFiniteNode>> first_nonfinite_node(absl::Span<const Tensor> in);
  // Training steps begun, skipped and failed ones included, with accumulation of gradients the
  // micro-batches; not evaluations, nor calls that only told the error of an earlier step. Random
  // masks of a training step follow it, those of an evaluation (where something in it is random) a
  // count of evaluations that no state keeps: they change nothing of a later training step.
  uint64_t run_count() const;

  // Text of the step as build() described it, with the module of each node, and after all passes,
  // for the signature called or compiled last; empty before. Constants over 1,024 elements are not
  // in it, only the names of the files to which config.dump_dir writes them. The first ends with a
  // comment that names the modules that evaluate in a training step. With accumulation of gradients
  // the second is two graphs, the step that adds them and, behind it, the update.
  std::string traced_text() const;
  std::string compiled_text() const;
  // Null before the first compilation. Valid until the next call with another signature.
  const ir::Graph* compiled_graph() const;
  // One line per kernel: node, implementation, and which candidates refused why.
  std::string kernel_log() const;
  // From now on every call tells `profile` of each kernel: the (first) node that it computes, and
  // how long its work took. Calls wait for the work of each kernel, which makes them slower. Null
  // switches it off.
  using Profile = std::function<void(const ir::Node&, const kernels::Kernel&, double seconds)>;
  void set_profile(Profile profile);
  // "12 of 17 nodes in 16 bit, 5 casts move 3.2 KiB, 1.2 MiB saved", and the table behind it: every
  // forward node with its dtype, class and reason. Of the signature called last; empty before.
  std::string amp_summary() const;
  std::string amp_table() const;
  // What works and yet is hardly meant, each once: backward() that nothing follows, an input in f64
  // that makes the step slow, shapes that have every call compile, mixed precision that lowers
  // nothing or takes more memory, a scaler that keeps skipping at its smallest scale; and what
  // passes say of nodes: a constant that does not fit f16. Waits for the steps under way. The first
  // note of each kind but the last also goes to standard error, once in a process, unless the
  // environment has HALFTONE_NOTES=0.
  std::vector<std::string> notes() const;
  // 0: the first notes only. 1: a line on standard error per pass and per compilation, and all
  // notes. 3: also both texts.
  void debug(int level);
  // Bytes of working memory that all executables share.
  size_t arena_bytes() const;
  const std::string& name() const;
  // The first mistake of the constructor, which the next call returns.
  const absl::Status& status() const;

 protected:
  // `module` must outlive the graph. Its parameters are then known as "<name>.weight", ... Names
  // must be unique.
  void add_module(const std::string& name, Module& module, Loc loc = Loc::current());
  // A parameter or buffer that belongs to no module.
  void add_parameter(const std::string& name, const Parameter& parameter, Loc loc = Loc::current());
  // All parameters added so far.
  optim::ParameterList parameters() const;
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;
  // named_parameters() in two lists for the groups of an optimizer, see parameter_split.h. A
  // pattern that matches none is a mistake.
  ParameterSplit split_parameters(const std::vector<std::string>& patterns,
                                  Loc loc = Loc::current());
  // Optimizers are named optimizer0, optimizer1, ... in order. Only parameters of this graph, each in one
  // group of one optimizer: of f32 or f64, and for an optimizer that keeps weights in bf16 of f32 or bf16.
  // What build() does not use stays as it is, which notes() tells.
  OptimizerHandle add_optimizer(const optim::Optimizer& optimizer, Loc loc = Loc::current());
  // Has the base rates of an optimizer follow a metric, see PlateauHandle::step; one for each
  // optimizer. Its state is the graph's: "optimizer0.plateau.best", ...
  PlateauHandle add_plateau(const OptimizerHandle& optimizer,
                            const optim::ReduceLROnPlateau& plateau, Loc loc = Loc::current());
  // The scaler of every backward() and optimizer that names none; named scaler0.
  ScalerHandle set_grad_scaler(const amp::GradScaler& scaler, Loc loc = Loc::current());
  // A further scaler, to be named where it is used.
  ScalerHandle add_scaler(const amp::GradScaler& scaler, Loc loc = Loc::current());
  // The same for the scaler of another graph, whose scale, counts and rule are then those of both:
  // a step of either is a step of it. Graphs that share a scaler wait for each other's calls.
  ScalerHandle set_grad_scaler(const ScalerHandle& shared, Loc loc = Loc::current());
  ScalerHandle add_scaler(const ScalerHandle& shared, Loc loc = Loc::current());
  // The first mistake of the calls above, forgotten from now on. For languages that raise a mistake
  // at once: the call that made it has changed nothing else.
  absl::Status TakeStatus();

 private:
  friend class GroupHandle;
  friend class EmaScope;
  friend class GraphNumbers;
  friend class OptimizerHandle;
  friend class PlateauHandle;
  friend class ScalerHandle;
  friend class Value;
  std::string Share(const ScalerHandle& shared, Loc loc);
  // All state, on all ranks or on rank `to` alone where ranks have some of it each.
  absl::StatusOr<StateDict> TakeState(int to, bool for_checkpoint);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace halftone::nn
