// State of a graph: saving, loading, and the scalars behind handles.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/graph/runtime/load_rename.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

constexpr char kScaler[] = "scaler";  // and a number

}  // namespace

Tensor CountTensor(uint64_t count) {
  Tensor tensor = Tensor::Empty(DType::kI64, Shape{});
  *tensor.data<int64_t>() = static_cast<int64_t>(count);
  return tensor;
}

std::map<std::string, ir::ValueType> Graph::Impl::StateMadeLater(const GraphConfig& config) const {
  std::map<std::string, ir::ValueType> types;
  for (const OptimizerEntry& entry : optimizers) {
    types[optim::FirstNonFiniteVariable(entry.name)] = {DType::kI32, Shape{}};
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      const std::vector<std::string> slots = SlotsOf(entry, group);
      for (const std::string& parameter : entry.GroupNames(group)) {
        const std::shared_ptr<runtime::VariableStorage> storage = store.Find(parameter);
        for (const std::string& slot : slots) {
          types[optim::SlotVariable(entry.name, parameter, slot)] = {storage->dtype(),
                                                                     storage->shape()};
        }
      }
    }
  }
  const bool may_lower_to_f16 = config.amp_enabled() && config.amp_policy().dtype != DType::kBF16;
  if (scalers.empty() && may_lower_to_f16) {
    for (const ir::Variable& variable : amp::ScalerVariables(Concat(kScaler, 0), 1, 1)) {
      types[variable.name] = variable.type;
    }
  }
  return types;
}

bool Graph::Impl::IsPrecisionState(const std::string& variable) const {
  for (const OptimizerEntry& entry : optimizers) {
    if (variable == optim::FirstNonFiniteVariable(entry.name)) return true;
  }
  // "scaler<number>.<state>"
  const size_t after_digits = variable.find_first_not_of("0123456789", std::strlen(kScaler));
  if (variable.rfind(kScaler, 0) != 0 || after_digits == std::strlen(kScaler)) return false;
  if (after_digits == variable.npos) return false;
  const std::vector<ir::Variable> state =
      amp::ScalerVariables(variable.substr(0, after_digits), 1, 1);
  return std::any_of(state.begin(), state.end(),
                     [&variable](const ir::Variable& v) { return v.name == variable; });
}

double Graph::Impl::StateScalar(const std::string& variable, double fallback) const {
  const runtime::StateLock lock = Lock();
  const std::shared_ptr<runtime::VariableStorage> storage = store.Find(variable);
  if (storage == nullptr || storage->shape().num_elements() != 1) return fallback;
  return storage->materialised() ? storage->value().item() : storage->init().a;
}

absl::Status Graph::Impl::SetStateScalar(const std::string& variable, double value) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const std::shared_ptr<runtime::VariableStorage> storage = store.Find(variable);
  if (storage == nullptr) {
    return FailedPrecondition("graph @", name, " has no state \"", variable, "\"");
  }
  return storage->Assign(Tensor::Scalar(storage->dtype(), value));
}

std::string Graph::Impl::FirstNonFinite() const {
  for (const OptimizerEntry& entry : optimizers) {
    const double index = StateScalar(optim::FirstNonFiniteVariable(entry.name), -1);
    if (index >= 0 && static_cast<size_t>(index) < entry.parameter_names.size()) {
      return entry.parameter_names[static_cast<size_t>(index)];
    }
  }
  return "";
}

std::string Graph::first_nonfinite_param() const {
  const runtime::StateLock lock = Lock();
  return impl_->FirstNonFinite();
}

absl::Status Graph::initialize() {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(impl_->status);
  HT_RETURN_IF_ERROR(impl_->UpdateNames().status());
  return impl_->store.MaterialiseAll(config.seed);
}

absl::StatusOr<StateDict> Graph::state_dict() {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(initialize());
  HT_ASSIGN_OR_RETURN(StateDict state, impl_->store.Save());
  state[kRunCount] = CountTensor(impl_->run_count);
  return state;
}

absl::StatusOr<StateDict> Graph::Impl::WithOwnSlotNames(const StateDict& state) const {
  std::map<std::string, std::string> own_names;
  for (const OptimizerEntry& entry : optimizers) {
    std::set<std::string> slots;
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      for (std::string& slot : SlotsOf(entry, group)) slots.insert(std::move(slot));
    }
    for (const auto& [variable, storage] : bound) {
      const std::string& own = *store.NameOf(storage.get());
      if (own == variable) continue;
      for (const std::string& slot : slots) {
        own_names[optim::SlotVariable(entry.name, variable, slot)] =
            optim::SlotVariable(entry.name, own, slot);
      }
    }
  }
  if (own_names.empty()) return state;
  StateDict renamed;
  std::map<std::string, std::string> origins;
  for (const auto& [variable, value] : state) {
    const auto own = own_names.find(variable);
    HT_RETURN_IF_ERROR(runtime::PutRenamed(
        variable, own == own_names.end() ? variable : own->second, value, renamed, origins));
  }
  return renamed;
}

absl::StatusOr<LoadReport> Graph::load_state_dict(const StateDict& state, bool strict) {
  return load_state_dict(state, LoadOptions{.strict = strict});
}

absl::StatusOr<LoadReport> Graph::load_state_dict(const StateDict& state,
                                                  const LoadOptions& options) {
  HT_RETURN_IF_ERROR(internal::CheckMayChange(impl_->info, "load_state_dict"));
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(impl_->status);
  HT_RETURN_IF_ERROR(impl_->UpdateNames().status());
  std::vector<std::string> unused;
  HT_ASSIGN_OR_RETURN(StateDict variables, runtime::Renamed(state, options, &unused));
  HT_ASSIGN_OR_RETURN(variables, impl_->WithOwnSlotNames(variables));
  uint64_t run_count = impl_->run_count;
  std::vector<runtime::LoadMismatch> mismatched;
  if (const auto count = variables.find(kRunCount); count != variables.end()) {
    const Tensor& value = count->second;
    if (value.defined() && value.dtype() == DType::kI64 && value.shape() == Shape{}) {
      run_count = static_cast<uint64_t>(*value.data<int64_t>());
    } else {
      mismatched.push_back(
          {kRunCount, value.defined() ? value.TypeString() : "an undefined tensor", "i64[]"});
    }
    variables.erase(count);
  }
  if (options.strict && !mismatched.empty()) {
    return InvalidArgument("load_state_dict: \"", kRunCount, "\" is ", mismatched[0].got,
                           ", expected ", mismatched[0].expected);
  }
  const std::map<std::string, ir::ValueType> later = impl_->StateMadeLater(config);
  runtime::LoadRules rules;
  rules.type_later = [&later](const std::string& name) {
    const auto found = later.find(name);
    return found == later.end() ? std::nullopt : std::optional(found->second);
  };
  rules.is_optional = [this](const std::string& name) { return impl_->IsPrecisionState(name); };
  HT_ASSIGN_OR_RETURN(LoadReport report, impl_->store.Load(variables, options.strict, rules));
  impl_->run_count = run_count;
  report.unused_renames = std::move(unused);
  report.mismatched.insert(report.mismatched.end(), mismatched.begin(), mismatched.end());
  return report;
}

absl::Status Graph::save_checkpoint(const std::string& path,
                                    const std::map<std::string, std::string>& metadata) {
  runtime::Checkpoint checkpoint;
  HT_ASSIGN_OR_RETURN(checkpoint.tensors, state_dict());
  checkpoint.metadata = metadata;
  return runtime::WriteCheckpoint(path, checkpoint);
}

absl::StatusOr<LoadReport> Graph::load_checkpoint(const std::string& path, bool strict,
                                                  std::map<std::string, std::string>* metadata) {
  return load_checkpoint(path, LoadOptions{.strict = strict}, metadata);
}

absl::StatusOr<LoadReport> Graph::load_checkpoint(const std::string& path,
                                                  const LoadOptions& options,
                                                  std::map<std::string, std::string>* metadata) {
  HT_ASSIGN_OR_RETURN(runtime::Checkpoint checkpoint, runtime::ReadCheckpoint(path));
  absl::StatusOr<LoadReport> report = load_state_dict(checkpoint.tensors, options);
  if (!report.ok()) return Annotate(report.status(), path + ": ");
  if (metadata != nullptr) *metadata = std::move(checkpoint.metadata);
  return report;
}

double GroupHandle::lr() const {
  if (graph_ == nullptr) return 0;
  return graph_->impl_->StateScalar(optim::LearningRateVariable(optimizer_, index_), std::nan(""));
}

absl::Status GroupHandle::set_lr(double lr) {
  if (!(lr >= 0 && lr <= MaxFinite(DType::kF32))) {
    return InvalidArgument("set_lr: lr = ", lr, "; expected a number >= 0 that is finite in f32");
  }
  if (graph_ == nullptr) return FailedPrecondition("set_lr: the handle belongs to no graph");
  HT_RETURN_IF_ERROR(internal::CheckMayChange(graph_->impl_->info, "set_lr"));
  const OptimizerEntry* entry = graph_->impl_->FindOptimizer(optimizer_);
  if (entry != nullptr && index_ >= entry->optimizer.groups().size()) {
    return absl::OutOfRangeError(Concat("set_lr: group ", index_, " of ", optimizer_,
                                        "; expected 0..", entry->optimizer.groups().size() - 1));
  }
  return graph_->impl_->SetStateScalar(optim::LearningRateVariable(optimizer_, index_), lr);
}

std::vector<std::string> GroupHandle::parameters() const {
  const OptimizerEntry* entry =
      graph_ == nullptr ? nullptr : graph_->impl_->FindOptimizer(optimizer_);
  if (entry == nullptr || index_ >= entry->optimizer.groups().size()) return {};
  return entry->GroupNames(index_);
}

size_t OptimizerHandle::num_groups() const {
  const OptimizerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindOptimizer(name_);
  return entry == nullptr ? 0 : entry->optimizer.groups().size();
}

double OptimizerHandle::lr() const { return group(0).lr(); }

absl::Status OptimizerHandle::set_lr(double lr) {
  HT_RETURN_IF_ERROR(group(0).set_lr(lr));
  for (size_t i = 1; i < num_groups(); ++i) HT_RETURN_IF_ERROR(group(i).set_lr(lr));
  return absl::OkStatus();
}

int64_t OptimizerHandle::applied_steps() const {
  if (graph_ == nullptr) return 0;
  return static_cast<int64_t>(graph_->impl_->StateScalar(optim::AppliedStepsVariable(name_), 0));
}

double OptimizerHandle::grad_norm() const {
  const OptimizerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindOptimizer(name_);
  if (entry == nullptr) return std::nan("");
  const runtime::StateLock lock = graph_->impl_->Lock();
  graph_->impl_->Settle();
  return static_cast<double>(entry->last.grad_norm);
}

bool OptimizerHandle::last_step_skipped() const {
  const OptimizerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindOptimizer(name_);
  if (entry == nullptr) return false;
  const runtime::StateLock lock = graph_->impl_->Lock();
  graph_->impl_->Settle();
  return !entry->last.applied;
}

const std::string& ScalerHandle::name() const {
  return graph_ != nullptr && name_.empty() ? graph_->impl_->info.default_scaler : name_;
}

absl::Status ScalerHandle::Find(const char* what) const {
  if (graph_ == nullptr) return FailedPrecondition(what, ": the handle belongs to no graph");
  HT_RETURN_IF_ERROR(graph_->impl_->AddAutomaticScaler(*graph_));
  if (graph_->impl_->FindScaler(name()) != nullptr) return absl::OkStatus();
  return FailedPrecondition(what, ": graph @", graph_->name(),
                            " has no grad scaler; expected set_grad_scaler");
}

absl::Status ScalerHandle::CheckMayChange(const char* what) const {
  if (graph_ != nullptr) {
    HT_RETURN_IF_ERROR(internal::CheckMayChange(graph_->impl_->info, what));
  }
  return Find(what);
}

double ScalerHandle::scale() const {
  return graph_ == nullptr ? 1 : graph_->impl_->StateScalar(name() + ".scale", 1);
}

absl::Status ScalerHandle::set_scale(double scale) {
  if (!amp::IsLossScale(scale)) {
    return InvalidArgument("set_scale: scale = ", scale, "; expected ", amp::kLossScaleRange);
  }
  HT_RETURN_IF_ERROR(CheckMayChange("set_scale"));
  return graph_->impl_->SetStateScalar(name() + ".scale", scale);
}

int64_t ScalerHandle::Counter(const char* what) const {
  if (graph_ == nullptr) return 0;
  return static_cast<int64_t>(graph_->impl_->StateScalar(Concat(name(), ".", what), 0));
}

int64_t ScalerHandle::growth_tracker() const { return Counter("growth_tracker"); }
int64_t ScalerHandle::total_steps() const { return Counter("total_steps"); }
int64_t ScalerHandle::skipped_count() const { return Counter("skipped_steps"); }
int64_t ScalerHandle::consecutive_skips() const { return Counter("consecutive_skips"); }

absl::StatusOr<amp::StateDict> ScalerHandle::state_dict() const {
  HT_RETURN_IF_ERROR(Find("state_dict"));
  const runtime::StateLock lock = graph_->impl_->Lock();
  HT_RETURN_IF_ERROR(lock.status());
  amp::GradScaler scaler = graph_->impl_->FindScaler(name())->scaler;
  if (scaler.is_enabled()) {
    std::map<std::string, Tensor> values = scaler.StateTensors(name());
    for (auto& [variable, value] : values) {
      const std::shared_ptr<runtime::VariableStorage> storage = graph_->impl_->store.Find(variable);
      if (storage != nullptr && storage->materialised()) value = storage->value();
    }
    HT_RETURN_IF_ERROR(scaler.SetStateTensors(name(), values));
  }
  return scaler.state_dict();
}

absl::Status ScalerHandle::load_state_dict(const amp::StateDict& state) {
  HT_RETURN_IF_ERROR(CheckMayChange("load_state_dict"));
  const runtime::StateLock lock = graph_->impl_->Lock();
  HT_RETURN_IF_ERROR(lock.status());
  ScalerEntry* entry = graph_->impl_->FindScaler(name());
  HT_RETURN_IF_ERROR(entry->scaler.load_state_dict(state));
  for (const auto& [variable, value] : entry->scaler.StateTensors(name())) {
    if (const auto storage = graph_->impl_->store.Find(variable)) {
      HT_RETURN_IF_ERROR(storage->Assign(value));
    }
  }
  // Growth factor and the like are attributes of compiled nodes.
  graph_->impl_->DropSteps(0);
  return absl::OkStatus();
}

}  // namespace halftone::nn
