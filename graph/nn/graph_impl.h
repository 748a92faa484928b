// The inside of nn::Graph: one of each part, and what takes several of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "halftone/graph/nn/accumulation.h"
#include "halftone/graph/nn/compiled_step.h"
#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/nn/graph.h"
#include "halftone/graph/nn/graph_notes.h"
#include "halftone/graph/nn/graph_state.h"
#include "halftone/graph/nn/module_modes.h"
#include "halftone/graph/nn/step_cache.h"
#include "halftone/graph/nn/steps_under_way.h"
#include "halftone/graph/runtime/replay.h"

namespace halftone::nn {

// A parameter and its average, which have each other's values while an EmaScope lives.
struct ExchangedAverage {
  std::string name;  // of the parameter
  std::shared_ptr<runtime::VariableStorage> parameter, average;
};
using ExchangedAverages = std::vector<ExchangedAverage>;

struct Graph::Impl {
  using Build = absl::FunctionRef<Values(const Values&)>;

  explicit Impl(std::string name);
  ~Impl() { under_way.Settle(); }

  // The step for a signature, from the cache, or traced and compiled. `config` is that of the
  // graph, which `build` may not change: it is put back.
  absl::StatusOr<CompiledStep*> Prepare(GraphConfig& config, Build build,
                                        absl::Span<const Tensor> in);
  // Runs a step whose outputs are set.
  absl::Status Execute(CompiledStep& step, absl::Span<const Tensor> in, const GraphConfig& config);
  // See Graph::flush.
  absl::Status Flush(const GraphConfig& config);
  // Waits, and forgets all but the `count` steps used last.
  void KeepSteps(size_t count);
  // Gives a graph that lowers to f16 a scaler if it has none: f16 gradients vanish without one. A
  // pass drops it where nothing is f16.
  absl::Status AddAutomaticScaler(const GraphConfig& config);
  // See Graph::first_nonfinite_node and ScalerHandle::measure_gradients. `step` has run or not.
  absl::StatusOr<std::optional<NonFiniteNode>> FirstNonFiniteNode(const CompiledStep& step,
                                                                  absl::Span<const Tensor> in);
  absl::StatusOr<GradientReport> MeasureGradients(const ScalerEntry& scaler,
                                                  const CompiledStep& step,
                                                  absl::Span<const Tensor> in);
  // See EmaScope.
  absl::Status EnterAverages(uint64_t seed);
  absl::Status LeaveAverages();
  // An average in the place of a parameter is not to be trained, overwritten or saved, whichever
  // graph's scope has put it there.
  absl::Status CheckNoAverages(const char* what) const;

  Declaration declared;
  GraphNotes notes;
  Device device;
  bool training = true;
  std::optional<ExchangedAverages> exchanged;  // while an EmaScope lives
  int debug = 0;
  Profile profile;  // of every step; null: none
  ModuleModes modes;
  std::shared_ptr<runtime::Arena> arena = std::make_shared<runtime::Arena>();
  StepCache cache;
  StepsUnderWay under_way;
  GraphState state;
  Accumulation accumulation;

 private:
  absl::StatusOr<std::unique_ptr<CompiledStep>> Compile(GraphConfig& config, Build build,
                                                        absl::Span<const Tensor> in, size_t mode);
  // The step of build() for values of these types. `num_outputs` are its own; what optimizers tell
  // comes behind.
  absl::StatusOr<std::unique_ptr<ir::Graph>> Trace(GraphConfig& config, Build build,
                                                   absl::Span<const ir::ValueType> in,
                                                   size_t* num_outputs);
  // The same for a call's tensors, once the ranks of a job have compared what they traced.
  absl::StatusOr<std::unique_ptr<ir::Graph>> TraceCall(GraphConfig& config, Build build,
                                                       absl::Span<const Tensor> in,
                                                       size_t micro_batches, size_t* num_outputs);
  // Compiles `traced` for `step`, and the update of its window if it has one.
  absl::Status MakeExecutables(CompiledStep& step, std::unique_ptr<ir::Graph> traced,
                               size_t num_outputs);
  // Moves the optimizers' state to where `config` wants it, on all ranks of a job.
  absl::Status PlaceState(const StepConfig& config);
  // What ranks of a job do once a training step is compiled, on every rank alike.
  absl::Status Join(const CompiledStep& step, const absl::Status& compiled);
  // One call of build(). Null if it tied parameters, so that what it traced has old names.
  absl::StatusOr<std::unique_ptr<ir::Graph>> TraceOnce(GraphConfig& config, Build build,
                                                       absl::Span<const ir::ValueType> in,
                                                       std::optional<DType> low,
                                                       size_t* num_outputs);
  // Compiles `traced` for `step`, whose configuration is set.
  absl::Status MakeExecutable(CompiledStep& step, std::unique_ptr<ir::Graph> traced);
  // The step that updates the parameters by the sums that `step` makes; that of another step where
  // it is the same.
  absl::StatusOr<std::shared_ptr<CompiledStep>> UpdateOf(const CompiledStep& step);
  // Has the outputs behind those of build() written where the optimizers' results are.
  void TakeResults(CompiledStep& step);
  // The low dtype to compile for; nullopt: none, f32 throughout.
  absl::StatusOr<std::optional<DType>> LowType(const GraphConfig& config);
  // Where dumps are wanted, what the first run of `step` starts from.
  absl::Status DumpFirst(CompiledStep& step, const GraphConfig& config);
  absl::Status Update(const GraphConfig& config);
  // Once an update was started, or a step failed. `before`: the count of training steps before it.
  absl::Status AfterUpdate(absl::Status ran, uint64_t before);
  // Once a training step is done.
  void AfterTraining(bool ok);
  // What the last training step started from if it was skipped, else what the next one would.
  runtime::ReplayOptions ReplayOptionsFor(const CompiledStep& step) const;
  // Replays `lowered`, a graph of `step`, for each of its micro-batches until `go_on` says no.
  absl::Status ReplayMicroBatches(const CompiledStep& step, const ir::Graph& lowered,
                                  runtime::ReplayOptions options, absl::Span<const Tensor> in,
                                  absl::FunctionRef<bool(const runtime::SeenRanges&)> go_on);
  // `error` of a call that skipped too many steps, with the node that made the last one bad.
  absl::Status Explain(const absl::Status& error, const CompiledStep& step,
                       absl::Span<const Tensor> in);
};

}  // namespace halftone::nn
