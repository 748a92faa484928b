// State of a graph: saving, loading, and the scalars behind handles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

constexpr char kRunCount[] = "run_count";
constexpr char kScaler[] = "scaler";  // and a number

}  // namespace

std::map<std::string, ir::ValueType> Graph::Impl::StateMadeLater(const GraphConfig& config) const {
  std::map<std::string, ir::ValueType> types;
  for (const OptimizerEntry& entry : optimizers) {
    types[optim::FirstNonFiniteVariable(entry.name)] = {DType::kI32, Shape{}};
    const auto rule =
        optim::RuleOfMarker(entry.optimizer.ToMarker(entry.name, entry.parameter_names));
    if (!rule.ok()) continue;
    for (const std::string& parameter : entry.parameter_names) {
      const std::shared_ptr<runtime::VariableStorage> storage = store.Find(parameter);
      for (const std::string& slot : rule->slots) {
        types[optim::SlotVariable(entry.name, parameter, slot)] = {storage->dtype(),
                                                                   storage->shape()};
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
  const std::shared_ptr<runtime::VariableStorage> storage = store.Find(variable);
  if (storage == nullptr || storage->shape().num_elements() != 1) return fallback;
  return storage->materialised() ? storage->value().item() : storage->init().a;
}

absl::Status Graph::Impl::SetStateScalar(const std::string& variable, double value) {
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

std::string Graph::first_nonfinite_param() const { return impl_->FirstNonFinite(); }

absl::Status Graph::initialize() {
  HT_RETURN_IF_ERROR(impl_->status);
  return impl_->store.MaterialiseAll(config.seed);
}

absl::StatusOr<StateDict> Graph::state_dict() {
  HT_RETURN_IF_ERROR(initialize());
  StateDict state = impl_->store.Save();
  Tensor count = Tensor::Empty(DType::kI64, Shape{});
  *count.data<int64_t>() = static_cast<int64_t>(impl_->run_count);
  state[kRunCount] = count;
  return state;
}

absl::StatusOr<LoadReport> Graph::load_state_dict(const StateDict& state, bool strict) {
  HT_RETURN_IF_ERROR(impl_->status);
  StateDict variables = state;
  const auto count = variables.find(kRunCount);
  uint64_t run_count = impl_->run_count;
  if (count != variables.end()) {
    const Tensor& value = count->second;
    if (!value.defined() || value.dtype() != DType::kI64 || value.shape() != Shape{}) {
      return InvalidArgument("load_state_dict: \"", kRunCount, "\" is ",
                             value.defined() ? value.TypeString() : "an undefined tensor",
                             ", expected i64[]");
    }
    run_count = static_cast<uint64_t>(*value.data<int64_t>());
    variables.erase(count);
  }
  const std::map<std::string, ir::ValueType> later = impl_->StateMadeLater(config);
  runtime::LoadRules rules;
  rules.type_later = [&later](const std::string& name) {
    const auto found = later.find(name);
    return found == later.end() ? std::nullopt : std::optional(found->second);
  };
  rules.is_optional = [this](const std::string& name) { return impl_->IsPrecisionState(name); };
  HT_ASSIGN_OR_RETURN(LoadReport report, impl_->store.Load(variables, strict, rules));
  impl_->run_count = run_count;
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
  HT_ASSIGN_OR_RETURN(runtime::Checkpoint checkpoint, runtime::ReadCheckpoint(path));
  absl::StatusOr<LoadReport> report = load_state_dict(checkpoint.tensors, strict);
  if (!report.ok()) return Annotate(report.status(), path + ": ");
  if (metadata != nullptr) *metadata = std::move(checkpoint.metadata);
  return report;
}

double OptimizerHandle::lr() const {
  return graph_ == nullptr ? 0 : graph_->impl_->StateScalar(optim::LearningRateVariable(name_), 0);
}

absl::Status OptimizerHandle::set_lr(double lr) {
  if (!std::isfinite(lr) || lr < 0) {
    return InvalidArgument("set_lr: lr = ", lr, "; expected a finite number >= 0");
  }
  if (graph_ == nullptr) return FailedPrecondition("set_lr: the handle belongs to no graph");
  return graph_->impl_->SetStateScalar(optim::LearningRateVariable(name_), lr);
}

int64_t OptimizerHandle::applied_steps() const {
  if (graph_ == nullptr) return 0;
  return static_cast<int64_t>(graph_->impl_->StateScalar(optim::AppliedStepsVariable(name_), 0));
}

double OptimizerHandle::grad_norm() const {
  const OptimizerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindOptimizer(name_);
  if (entry != nullptr) graph_->impl_->Settle();
  return entry == nullptr ? std::nan("") : static_cast<double>(entry->last.grad_norm);
}

bool OptimizerHandle::last_step_skipped() const {
  const OptimizerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindOptimizer(name_);
  if (entry != nullptr) graph_->impl_->Settle();
  return entry != nullptr && !entry->last.applied;
}

double ScalerHandle::scale() const {
  return graph_ == nullptr ? 1 : graph_->impl_->StateScalar(name_ + ".scale", 1);
}

absl::Status ScalerHandle::set_scale(double scale) {
  if (!(scale > 0) || !std::isfinite(static_cast<float>(scale)) || static_cast<float>(scale) == 0) {
    return InvalidArgument("set_scale: scale = ", scale,
                           "; expected a number > 0 that is finite in f32");
  }
  if (graph_ == nullptr) return FailedPrecondition("set_scale: the handle belongs to no graph");
  return graph_->impl_->SetStateScalar(name_ + ".scale", scale);
}

int64_t ScalerHandle::Counter(const char* what) const {
  if (graph_ == nullptr) return 0;
  return static_cast<int64_t>(graph_->impl_->StateScalar(Concat(name_, ".", what), 0));
}

int64_t ScalerHandle::growth_tracker() const { return Counter("growth_tracker"); }
int64_t ScalerHandle::total_steps() const { return Counter("total_steps"); }
int64_t ScalerHandle::skipped_count() const { return Counter("skipped_steps"); }
int64_t ScalerHandle::consecutive_skips() const { return Counter("consecutive_skips"); }

absl::StatusOr<amp::StateDict> ScalerHandle::state_dict() const {
  ScalerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindScaler(name_);
  if (entry == nullptr) return FailedPrecondition("state_dict: the handle belongs to no graph");
  amp::GradScaler scaler = entry->scaler;
  if (scaler.is_enabled()) {
    std::map<std::string, Tensor> values = scaler.StateTensors(name_);
    for (auto& [variable, value] : values) {
      const std::shared_ptr<runtime::VariableStorage> storage = graph_->impl_->store.Find(variable);
      if (storage != nullptr && storage->materialised()) value = storage->value();
    }
    HT_RETURN_IF_ERROR(scaler.SetStateTensors(name_, values));
  }
  return scaler.state_dict();
}

absl::Status ScalerHandle::load_state_dict(const amp::StateDict& state) {
  ScalerEntry* entry = graph_ == nullptr ? nullptr : graph_->impl_->FindScaler(name_);
  if (entry == nullptr) {
    return FailedPrecondition("load_state_dict: the handle belongs to no graph");
  }
  HT_RETURN_IF_ERROR(entry->scaler.load_state_dict(state));
  for (const auto& [variable, value] : entry->scaler.StateTensors(name_)) {
    if (const auto storage = graph_->impl_->store.Find(variable)) {
      HT_RETURN_IF_ERROR(storage->Assign(value));
    }
  }
  // Growth factor and the like are attributes of compiled nodes.
  graph_->impl_->DropSteps(0);
  return absl::OkStatus();
}

}  // namespace halftone::nn
