// The inside of nn::Graph, shared by the sources that implement it.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/nn/graph.h"
#include "halftone/graph/nn/notes.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/graph/runtime/compile.h"

namespace halftone::nn {

// The counter of random ops in a saved state.
inline constexpr char kRunCount[] = "run_count";
Tensor CountTensor(uint64_t count);

// What a run tells about an optimizer; hidden graph outputs are written straight into it. To be
// read after Impl::Settle.
struct StepResult {
  alignas(kBufferAlignment) float grad_norm = std::numeric_limits<float>::quiet_NaN();
  alignas(kBufferAlignment) bool applied = true;
};

struct OptimizerEntry {
  std::string name;
  Loc added_at;
  optim::Optimizer optimizer;
  std::vector<std::string> parameter_names;  // of all groups, in order
  StepResult last;

  std::vector<std::string> GroupNames(size_t group) const;
  ir::Attributes ToMarker(size_t group) const;
};

struct ScalerEntry {
  std::string name;
  amp::GradScaler scaler;
  bool automatic = false;  // made for f16 because the user set none
  // Looked up once: read after every step. Null if disabled.
  std::shared_ptr<runtime::VariableStorage> consecutive_skips = nullptr;
  std::shared_ptr<runtime::VariableStorage> scale = nullptr;
  // consecutive_skips when the scale was first seen where backing off ends; -1: it is not there.
  int64_t stuck_since = -1;
  bool stuck_is_noted = false;
};

// What an optimizer keeps for a parameter, while names are bound anew.
struct HeldSlot {
  const OptimizerEntry* optimizer;
  std::string name;  // "exp_avg"
  std::shared_ptr<runtime::VariableStorage> of;
  runtime::VariableStore::Held held;
};

// What add_module or add_parameter was given: one of module and parameter.
struct Addition {
  std::string name;
  Module* module = nullptr;
  Parameter parameter;
  Loc added_at;
};

// For people: large constants are named, not printed.
std::string TextOf(const ir::Graph& graph, bool scopes = false);

// One compiled signature.
struct CompiledStep {
  std::vector<ir::ValueType> inputs;
  StepConfig config;
  bool training = true;
  size_t modes = 0;          // of the modules, see Impl::ReadModes
  std::string modes_remark;  // the same for people; empty where all train
  std::unique_ptr<ir::Graph> traced;
  std::unique_ptr<runtime::Executable> executable;
  size_t num_outputs = 0;        // of build(); the rest goes to StepResults
  bool dropped_another = false;  // until its first run
  std::string dump_dir;          // where the first run writes what it starts from; empty: nowhere
  // Argument tables of Executable::Run; those of hidden outputs are filled once.
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<Buffer*> buffers;  // of `out`; null for hidden outputs

  // The tensors that the next run writes; they must outlive its Start.
  void SetOutputs(absl::Span<const Tensor> tensors);
};

struct Graph::Impl {
  std::string name;
  absl::Status status;  // the first mistake of the constructor
  Device device;
  bool training = true;
  int debug = 0;
  Profile profile;                // of every step; null: none
  uint64_t run_count = 0;         // training steps begun; random masks follow it
  uint64_t evaluation_count = 0;  // the same for evaluations, which no state keeps

  runtime::VariableStore store;
  internal::GraphInfo info;
  std::vector<Addition> additions;
  // Parameters and buffers of `additions` as `store` has them, and the version of the process's
  // structure at which that was so.
  std::map<std::string, std::shared_ptr<runtime::VariableStorage>> bound;
  uint64_t structure_version = 0;
  // Combinations of modes and wishes of modules that were met; an index into them stands for one in
  // the cache. `modes` are those that held at internal::ModesVersion() == modes_version.
  std::vector<std::vector<uint8_t>> mode_sets;
  struct {
    size_t training, evaluation;
  } modes = {0, 0};
  uint64_t modes_version = 0;
  std::deque<OptimizerEntry> optimizers;  // addresses of StepResults stay
  std::deque<ScalerEntry> scalers;

  std::shared_ptr<runtime::Arena> arena = std::make_shared<runtime::Arena>();
  std::vector<std::unique_ptr<CompiledStep>> cache;  // most recently used first
  Notes notes;
  // Calls that dropped a compiled step for a new one, less those that found theirs.
  int compiled_anew = 0;
  // Of amp policies: entries that a compilation matched, and the notes on those that none has.
  std::set<std::string> matched_entries;
  std::map<std::string, std::string> entry_notes;
  // The step whose outputs may still be under way; null: none.
  CompiledStep* under_way = nullptr;
  absl::Status late_error;  // of a step whose call had returned; for the next call to tell

  ~Impl() { Settle(); }

  // Each public function of Graph and its handles that reads or writes what calls do holds one.
  runtime::StateLock Lock() const { return runtime::StateLock(store.guards()); }

  // Keeps the first error, with the user's file and line. Nothing where `error` is OK.
  void Fail(Loc loc, const absl::Status& error) {
    if (!status.ok()) return;
    const std::string where = internal::ToSourceLocation(loc).ToString();
    status = where.empty() ? error : Annotate(error, where + ": ");
  }
  void Add(Addition addition);
  // The parameters and buffers of all additions, under their names.
  std::vector<std::pair<std::string, Parameter>> NamedVariables() const;
  // Where parameters were assigned or members added since the names were bound, binds them anew;
  // optimizers and their state follow. Whether something has changed. Errors: what no optimizer can
  // follow, two variables of one name; nothing has changed then.
  absl::StatusOr<bool> UpdateNames();
  std::vector<HeldSlot> TakeSlots();
  // Under the names that their parameters have now; those of parameters that are gone are dropped.
  void PutSlots(std::vector<HeldSlot> slots);
  // Declares state whose name and first value are known before compiling.
  void BindState(const ir::Variable& variable, Loc loc, const Tensor& value = {});
  // The names of an optimizer's parameters, group after group. Errors: a parameter that is not this
  // graph's, that another optimizer or group has, or that is not f32 or f64.
  absl::StatusOr<std::vector<std::string>> NamesForOptimizer(
      const std::string& optimizer, const optim::Optimizer& description) const;
  ScalerEntry* FindScaler(const std::string& scaler);
  OptimizerEntry* FindOptimizer(const std::string& optimizer);
  // Names of what an optimizer keeps for each parameter of a group: "exp_avg".
  static std::vector<std::string> SlotsOf(const OptimizerEntry& entry, size_t group);
  // Slots that `state` has under another name of a tied parameter, under the one that it has here.
  absl::StatusOr<StateDict> WithOwnSlotNames(const StateDict& state) const;
  // Types of the state that only compiling makes, known before so that a load says at once what
  // does not fit, not the first step.
  std::map<std::string, ir::ValueType> StateMadeLater(const GraphConfig& config) const;
  // State that is there for mixed precision's sake: with it or without it a graph is the same.
  bool IsPrecisionState(const std::string& variable) const;
  // The single element of a state variable; `fallback` if there is none.
  double StateScalar(const std::string& variable, double fallback) const;
  absl::Status SetStateScalar(const std::string& variable, double value);

  // Brings `modes` up to date; looks at the modules only if any changed anywhere.
  void ReadModes();
  size_t IndexOfModes(std::vector<uint8_t> set);
  // "in evaluation mode: trunk (frozen), head/drop": modules whose mode is not that of the modules
  // around them. Empty where the step evaluates, or all train.
  std::string ModesRemark() const;
  absl::Status CheckInputs(absl::Span<const Tensor> in) const;
  absl::Status CheckOverlap(const CompiledStep& step, absl::Span<const Tensor> in,
                            absl::Span<const Tensor> out) const;
  // The step for a signature, moved to the front of the cache, traced and compiled if new.
  absl::StatusOr<CompiledStep*> Prepare(Graph& graph, absl::Span<const Tensor> in);
  absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(Graph& graph,
                                                            absl::Span<const Tensor> in);
  absl::StatusOr<std::unique_ptr<ir::Graph>> Trace(Graph& graph, absl::Span<const Tensor> in,
                                                   size_t* num_outputs);
  // One call of build(). Null if it tied parameters, so that what it traced has old names.
  absl::StatusOr<std::unique_ptr<ir::Graph>> TraceOnce(Graph& graph, absl::Span<const Tensor> in,
                                                       size_t* num_outputs);
  // Gives a graph that lowers to f16 a scaler if it has none: f16 gradients vanish without one. A
  // pass drops it where nothing is f16.
  absl::Status AddAutomaticScaler(Graph& graph);
  // The low dtype to compile for; nullopt: none, f32 throughout.
  absl::StatusOr<std::optional<DType>> LowType(const GraphConfig& config);
  void AddNote(NoteKind kind, std::string text);
  // Notes on entries of the policy that matched nothing in the step just compiled, and in none
  // before; a note on one that matched something now is taken back.
  void NoteEntries(const amp::Policy& policy, const std::map<std::string, std::string>& unmatched);
  // Of a traced graph and of a compiled step: what works and yet is hardly meant.
  void NoteUnreadBackward(const ir::Graph& traced);
  void NoteSurprises(const CompiledStep& step);
  bool NoteFloat64(const CompiledStep& step);
  void NoteNothingLow(const CompiledStep& step, DType low);
  void NoteMemory(const CompiledStep& step);
  // Before a step runs.
  void NoteCompilesAnew(CompiledStep& step, const GraphConfig& config);
  void EmitScalers(const GraphConfig& config, ir::Builder& builder);
  void EmitOptimizers(const GraphConfig& config, ir::Builder& builder);
  // Errors: clip_grad_norm that is no norm, or beside clip_norm; an unknown scaler.
  absl::Status CheckOptimizer(const GraphConfig& config, const OptimizerEntry& entry);
  // Makes parameters that build() does not use known to the graph, and says so in a note.
  void DeclareUnused(const OptimizerEntry& entry, ir::Builder& builder);
  // Whether the step of an optimizer gives its gradient norm.
  bool GivesGradNorm(const GraphConfig& config, const OptimizerEntry& entry);
  absl::Status Execute(Graph& graph, CompiledStep& step);
  absl::Status Launch(CompiledStep& step);
  // Waits for the outputs of all calls; what went wrong is kept in late_error.
  void Settle();
  // Waits, and forgets all but the `keep` steps used last.
  void DropSteps(size_t keep);
  // The last training step did not count.
  void NoteFailure();
  // Variables and inputs, as files that halftone_run reads.
  absl::Status DumpState(Graph& graph, const CompiledStep& step);
  absl::Status CheckSkips() const;
  // A note, once, on a scaler that keeps skipping at a scale that cannot fall. Reads no state but
  // after a skipped step; to be called when the step is done.
  void NoteStuckScalers();
  // Name of the first parameter with a non-finite gradient in the last training step.
  std::string FirstNonFinite() const;
};

}  // namespace halftone::nn
