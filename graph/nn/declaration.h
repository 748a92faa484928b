// Declaration: what the constructor of a graph declared, under the names by which the graph knows
// it: modules, parameters, optimizers, scalers. Mistakes are kept for the first call to tell.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "halftone/core/allocator.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/graph/runtime/state_lock.h"
#include "halftone/graph/runtime/variable_store.h"
#include "halftone/optim/grad_scaler.h"
#include "halftone/optim/optimizer.h"
#include "halftone/optim/reduce_on_plateau.h"

namespace halftone::nn {

// What a run tells about an optimizer; hidden graph outputs are written straight into it. To be
// read after StepsUnderWay::Settle.
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
  std::optional<optim::ReduceLROnPlateau> plateau = std::nullopt;

  std::vector<std::string> GroupNames(size_t group) const;
  ir::Attributes ToMarker(size_t group) const;
  // Names of what it keeps for each parameter of a group: "exp_avg".
  std::vector<std::string> SlotsOf(size_t group) const;
};

// A scaler's options, which graphs that share the scaler have in common. Their guard is that of its
// state.
struct ScalerRule {
  amp::GradScaler scaler;
  uint64_t version = 0;  // grows with every change of it
  // Not part of the rule, but as common: the scale as it was seen last (NaN: never), and its changes.
  float seen_scale = std::numeric_limits<float>::quiet_NaN();
  amp::ScaleHistory history = {};
};

struct ScalerEntry {
  std::string name;
  std::shared_ptr<ScalerRule> rule;
  uint64_t compiled_version = 0;  // of the rule, which compiled steps have as attributes
  bool automatic = false;         // made for f16 because the user set none
  // Looked up once: read after every step. Null if disabled.
  std::shared_ptr<runtime::VariableStorage> consecutive_skips = nullptr;
  std::shared_ptr<runtime::VariableStorage> scale = nullptr;
  std::shared_ptr<runtime::VariableStorage> total_steps = nullptr;
  // That of the training step begun last; NaN where an accelerator alone knows it.
  float step_scale = std::numeric_limits<float>::quiet_NaN();
  // consecutive_skips when the scale was first seen where backing off ends; -1: it is not there.
  int64_t stuck_since = -1;
  bool stuck_is_noted = false;

  const amp::GradScaler& scaler() const { return rule->scaler; }
};

// Which rank of a job keeps the optimizers' state of a parameter.
using StateOwners = std::map<const runtime::VariableStorage*, int>;

// What add_module or add_parameter was given: one of module and parameter.
struct Addition {
  std::string name;
  Module* module = nullptr;
  Parameter parameter;
  Loc added_at;
};

class Declaration {
 public:
  // `before_renaming` is called before variables lose their names: compiled steps hold those.
  Declaration(std::string name, std::function<void()> before_renaming)
      : name_(std::move(name)), before_renaming_(std::move(before_renaming)) {}

  const std::string& name() const { return name_; }
  // The first mistake.
  const absl::Status& status() const { return status_; }
  absl::Status TakeStatus() { return std::exchange(status_, absl::OkStatus()); }
  // Keeps the first error, with the user's file and line. Nothing where `error` is OK.
  void Fail(Loc loc, const absl::Status& error);

  // See the functions of Graph with these names. The name that a handle is to have is also given
  // after a mistake; empty: that of the graph's own scaler.
  void AddModule(const std::string& name, Module& module, Loc loc);
  void AddParameter(const std::string& name, const Parameter& parameter, Loc loc);
  std::string AddOptimizer(const optim::Optimizer& optimizer, Loc loc);
  void AddPlateau(const std::string& optimizer, const optim::ReduceLROnPlateau& plateau, Loc loc);
  std::string AddScaler(const amp::GradScaler& scaler, Loc loc);
  std::string SetGradScaler(const amp::GradScaler& scaler, Loc loc);
  // The same for a scaler that `owner` has too; null: the handle is on none.
  std::string ShareScaler(const ScalerEntry* scaler, const Declaration* owner, Loc loc);
  // Makes a scaler that was added that of every backward() and optimizer that names none.
  std::string SetDefaultScaler(absl::FunctionRef<std::string()> add, Loc loc);
  // Whether the rule of a scaler has changed since this was asked last.
  bool TakeRuleChanges();
  // The same for a graph that lowers to f16 without one.
  void SetAutomaticScaler();
  // Whether compiling for training may make the automatic scaler; it does where the step lowers to
  // f16.
  bool MayGetAutomaticScaler(const GraphConfig& config) const;

  // The parameters and buffers of all additions, under their names.
  std::vector<std::pair<std::string, Parameter>> NamedVariables() const;
  // Where parameters were assigned or members added since the names were bound, binds them anew;
  // optimizers and their state follow. Whether something has changed. Errors: what no optimizer can
  // follow, two variables of one name; nothing has changed then.
  absl::StatusOr<bool> UpdateNames();

  // Null if unknown.
  ScalerEntry* FindScaler(const std::string& scaler);
  const ScalerEntry* FindScaler(const std::string& scaler) const;
  OptimizerEntry* FindOptimizer(const std::string& optimizer);

  // Each public function of Graph and its handles that reads or writes what calls do holds one.
  runtime::StateLock Lock() const { return runtime::StateLock(store_.guards()); }

  runtime::VariableStore& store() { return store_; }
  const runtime::VariableStore& store() const { return store_; }
  const internal::GraphInfo& info() const { return info_; }
  // Parameters and buffers of all additions as store() has them.
  const std::map<std::string, std::shared_ptr<runtime::VariableStorage>>& bound() const {
    return bound_;
  }
  // Addresses of StepResults stay.
  std::deque<OptimizerEntry>& optimizers() { return optimizers_; }
  const std::deque<OptimizerEntry>& optimizers() const { return optimizers_; }
  std::deque<ScalerEntry>& scalers() { return scalers_; }
  const std::deque<ScalerEntry>& scalers() const { return scalers_; }
  // Empty: every rank keeps all (shards.h).
  const StateOwners& state_owners() const { return state_owners_; }
  void set_state_owners(StateOwners owners) { state_owners_ = std::move(owners); }

 private:
  // What an optimizer keeps for a parameter, while names are bound anew.
  struct HeldSlot {
    const OptimizerEntry* optimizer;
    std::string name;  // "exp_avg"
    std::shared_ptr<runtime::VariableStorage> of;
    runtime::VariableStore::Held held;
  };

  void Add(Addition addition);
  std::string NextScalerName() const;
  // Looks the state up that is read after every step.
  void FindScalerState(ScalerEntry& entry) const;
  // Declares state whose name and first value are known before compiling.
  void BindState(const ir::Variable& variable, Loc loc, const Tensor& value = {});
  void BindAverages(const OptimizerEntry& entry, Loc loc);
  // The names of an optimizer's parameters, group after group. Errors: a parameter that is not this
  // graph's, that another optimizer or group has, or whose type the optimizer cannot keep.
  absl::StatusOr<std::vector<std::string>> NamesForOptimizer(
      const std::string& optimizer, const optim::Optimizer& description) const;
  // Puts parameters kept in bf16 in the place of the optimizer's, in all modules of the graph, as if
  // they were assigned. Errors: those of VariableStorage::KeptIn; nothing has changed then.
  absl::Status KeepInBF16(optim::Optimizer& optimizer);
  std::vector<HeldSlot> TakeSlots();
  // Under the names that their parameters have now; those of parameters that are gone are dropped.
  void PutSlots(std::vector<HeldSlot> slots);

  std::string name_;
  std::function<void()> before_renaming_;
  absl::Status status_;
  runtime::VariableStore store_;
  internal::GraphInfo info_;
  std::vector<Addition> additions_;
  std::map<std::string, std::shared_ptr<runtime::VariableStorage>> bound_;
  uint64_t structure_version_ = 0;  // of the process, at which bound_ was right
  std::deque<OptimizerEntry> optimizers_;
  std::deque<ScalerEntry> scalers_;
  StateOwners state_owners_;
};

}  // namespace halftone::nn
