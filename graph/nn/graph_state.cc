#include "halftone/graph/nn/graph_state.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "halftone/graph/nn/shards.h"
#include "halftone/graph/nn/window_sums.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/graph/runtime/load_rename.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/amp/quantise_matmuls.h"

namespace halftone::nn {
namespace {

constexpr char kScaler[] = "scaler";  // and a number

}  // namespace

Tensor CountTensor(uint64_t count) {
  Tensor tensor = Tensor::Empty(DType::kI64, Shape{});
  *tensor.data<int64_t>() = static_cast<int64_t>(count);
  return tensor;
}

std::map<std::string, ir::ValueType> GraphState::StateMadeLater(const GraphConfig& config) const {
  std::map<std::string, ir::ValueType> types;
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    types[optim::FirstNonFiniteVariable(entry.name)] = {DType::kI32, Shape{}};
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      const std::vector<std::string> slots = entry.SlotsOf(group);
      for (const std::string& parameter : entry.GroupNames(group)) {
        const std::shared_ptr<runtime::VariableStorage> storage = declared_.store().Find(parameter);
        for (const std::string& slot : slots) {
          types[optim::SlotVariable(entry.name, parameter, slot)] = {storage->dtype(),
                                                                     storage->shape()};
        }
      }
    }
  }
  if (declared_.MayGetAutomaticScaler(config)) {
    for (const ir::Variable& variable : amp::ScalerVariables(Concat(kScaler, 0), 1, 1)) {
      types[variable.name] = variable.type;
    }
  }
  if (config.accumulates()) types.merge(WindowState(declared_));
  return types;
}

std::map<std::string, std::string> GraphState::Compensations() const {
  std::map<std::string, std::string> parameters;
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    if (entry.optimizer.step_options().weights != optim::Weights::kBF16Kahan) continue;
    for (const std::string& parameter : entry.parameter_names) {
      parameters[optim::SlotVariable(entry.name, parameter, ops::kCompensation)] = parameter;
    }
  }
  return parameters;
}

bool GraphState::IsPrecisionState(const std::string& variable) const {
  if (passes::F8StateType(variable).has_value()) return true;
  for (const OptimizerEntry& entry : declared_.optimizers()) {
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

double GraphState::Scalar(const std::string& variable, double fallback) const {
  const runtime::StateLock lock = declared_.Lock();
  const std::shared_ptr<runtime::VariableStorage> storage = declared_.store().Find(variable);
  if (storage == nullptr || storage->shape().num_elements() != 1) return fallback;
  return storage->materialised() ? storage->value().item() : storage->init().a;
}

absl::Status GraphState::SetScalar(const std::string& variable, double value) {
  const runtime::StateLock lock = declared_.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const std::shared_ptr<runtime::VariableStorage> storage = declared_.store().Find(variable);
  if (storage == nullptr) {
    return FailedPrecondition("graph @", declared_.name(), " has no state \"", variable, "\"");
  }
  return storage->Assign(Tensor::Scalar(storage->dtype(), value));
}

std::string GraphState::FirstNonFinite() const {
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    const double index = Scalar(optim::FirstNonFiniteVariable(entry.name), -1);
    if (index >= 0 && static_cast<size_t>(index) < entry.parameter_names.size()) {
      return entry.parameter_names[static_cast<size_t>(index)];
    }
  }
  return "";
}

absl::Status GraphState::Initialize(uint64_t seed) {
  HT_RETURN_IF_ERROR(declared_.status());
  HT_RETURN_IF_ERROR(declared_.UpdateNames().status());
  HT_RETURN_IF_ERROR(StartAverages(seed));
  return declared_.store().MaterialiseAll(seed);
}

bool GraphState::HasAverages(const OptimizerEntry& entry) const {
  return entry.optimizer.step_options().ema.has_value() &&
         Scalar(optim::EmaStepsVariable(entry.name), 0) > 0;
}

absl::Status GraphState::StartAverages(uint64_t seed, const std::set<std::string>& anew) {
  runtime::VariableStore& store = declared_.store();
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    if (!entry.optimizer.step_options().ema.has_value()) continue;
    for (const std::string& name : entry.parameter_names) {
      const std::string slot = optim::SlotVariable(entry.name, name, optim::kEmaSlot);
      const std::shared_ptr<runtime::VariableStorage> average = store.Find(slot);
      if (average != nullptr && anew.count(slot) == 0) continue;
      if (!HasAverages(entry)) break;
      const std::shared_ptr<runtime::VariableStorage> parameter = store.Find(name);
      if (!KeepsStateOf(declared_, *parameter)) continue;
      HT_RETURN_IF_ERROR(parameter->Materialise(seed, name));
      HT_RETURN_IF_ERROR(parameter->FetchToHost());
      if (average != nullptr) {
        HT_RETURN_IF_ERROR(average->Assign(parameter->value()));
      } else {
        const ir::ValueType type{parameter->dtype(), parameter->shape()};
        HT_RETURN_IF_ERROR(
            store.Declare({slot, type, ir::VariableKind::kOptimizer, false, {}}, parameter->value())
                .status());
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<runtime::StateDict> GraphState::Save(uint64_t seed) {
  HT_RETURN_IF_ERROR(Initialize(seed));
  HT_ASSIGN_OR_RETURN(runtime::StateDict state, declared_.store().Save());
  if (counts_.micro_batches == 0) {
    // Between windows there is nothing to keep: the next begins its sums anew.
    for (const auto& variable : WindowState(declared_)) state.erase(variable.first);
  }
  state[kRunCount] = CountTensor(counts_.training);
  return state;
}

absl::StatusOr<runtime::StateDict> GraphState::WithOwnSlotNames(
    const runtime::StateDict& state) const {
  std::map<std::string, std::string> own_names;
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    std::set<std::string> slots = {optim::kGradSumSlot};
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      for (std::string& slot : entry.SlotsOf(group)) slots.insert(std::move(slot));
    }
    for (const auto& [variable, storage] : declared_.bound()) {
      const std::string& own = *declared_.store().NameOf(storage.get());
      if (own == variable) continue;
      for (const std::string& slot : slots) {
        own_names[optim::SlotVariable(entry.name, variable, slot)] =
            optim::SlotVariable(entry.name, own, slot);
      }
    }
  }
  if (own_names.empty()) return state;
  runtime::StateDict renamed;
  std::map<std::string, std::string> origins;
  for (const auto& [variable, value] : state) {
    const auto own = own_names.find(variable);
    HT_RETURN_IF_ERROR(runtime::PutRenamed(
        variable, own == own_names.end() ? variable : own->second, value, renamed, origins));
  }
  return renamed;
}

absl::StatusOr<runtime::LoadReport> GraphState::Load(const runtime::StateDict& state,
                                                     const runtime::LoadOptions& options,
                                                     const GraphConfig& config) {
  HT_RETURN_IF_ERROR(declared_.status());
  HT_RETURN_IF_ERROR(declared_.UpdateNames().status());
  std::vector<std::string> unused;
  HT_ASSIGN_OR_RETURN(runtime::StateDict variables, runtime::Renamed(state, options, &unused));
  HT_ASSIGN_OR_RETURN(variables, WithOwnSlotNames(variables));
  TakeOwnWindow(declared_, config, variables);
  uint64_t run_count = counts_.training;
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
  const std::map<std::string, ir::ValueType> later = StateMadeLater(config);
  runtime::LoadRules rules{.strict = options.strict, .convert = options.convert};
  rules.type_later = [&later, &config](const std::string& name) {
    const auto found = later.find(name);
    if (found != later.end()) return std::optional(found->second);
    const bool in_f8 = config.amp_enabled() && config.amp_policy().dtype == DType::kF8;
    return in_f8 ? passes::F8StateType(name) : std::nullopt;
  };
  const std::map<std::string, ir::ValueType> window = WindowState(declared_);
  // Missing from a state between windows. Sums that this graph does not keep would be lost.
  const auto is_idle = [&](const std::string& name) {
    return variables.count(optim::kMicroBatchesVariable) == 0 && window.count(name) != 0;
  };
  const std::map<std::string, std::string> compensations = Compensations();
  rules.is_optional = [&](const std::string& name) {
    return IsPrecisionState(name) || is_idle(name) || compensations.count(name) != 0;
  };
  std::set<std::string> with_averages;
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    if (HasAverages(entry)) with_averages.insert(entry.name);
  }
  HT_ASSIGN_OR_RETURN(runtime::LoadReport report, declared_.store().Load(variables, rules));
  DropStateOfOthers(declared_);
  counts_.training = run_count;
  // A parameter that comes without one, from a run in f32 say, has lost nothing yet.
  for (const auto& [slot, parameter] : compensations) {
    const std::shared_ptr<runtime::VariableStorage> storage = declared_.store().Find(slot);
    const bool is_new = variables.count(parameter) != 0 && variables.count(slot) == 0;
    if (is_new && storage != nullptr) storage->StartAnew();
  }
  HT_RETURN_IF_ERROR(ResumeWindow(variables, config));
  std::erase_if(report.missing, is_idle);
  std::set<std::string> missing(report.missing.begin(), report.missing.end()), mismatched_names;
  for (const runtime::LoadMismatch& mismatch : report.mismatched) {
    mismatched_names.insert(mismatch.name);
  }
  std::set<std::string> anew;
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    for (const std::string& parameter : entry.parameter_names) {
      std::string slot = optim::SlotVariable(entry.name, parameter, optim::kEmaSlot);
      // With neither of the two loaded an average goes on to be that of its parameter.
      const bool goes_on =
          with_averages.count(entry.name) != 0 &&
          (missing.count(parameter) != 0 || mismatched_names.count(parameter) != 0);
      const bool is_lost = mismatched_names.count(slot) != 0;
      if (is_lost || (missing.count(slot) != 0 && !goes_on)) anew.insert(std::move(slot));
    }
  }
  HT_RETURN_IF_ERROR(StartAverages(config.seed, anew));
  report.unused_renames = std::move(unused);
  report.mismatched.insert(report.mismatched.end(), mismatched.begin(), mismatched.end());
  return report;
}

absl::Status GraphState::ResumeWindow(const runtime::StateDict& state, const GraphConfig& config) {
  const auto found = state.find(optim::kMicroBatchesVariable);
  const bool there = found != state.end() && found->second.defined() &&
                     found->second.dtype() == DType::kI64 && found->second.shape() == Shape{};
  const bool accumulates =
      config.accumulates() || declared_.store().Find(optim::kMicroBatchesVariable) != nullptr;
  const int64_t count = there && accumulates ? *found->second.data<int64_t>() : 0;
  counts_.micro_batches = count < 0 ? 0 : static_cast<uint64_t>(count);
  if (count > 0 || declared_.store().Find(optim::kMicroBatchesVariable) == nullptr) {
    return absl::OkStatus();
  }
  return SetScalar(optim::kMicroBatchesVariable, 0);
}

}  // namespace halftone::nn
