#include "halftone/graph/nn/declaration.h"

#include <algorithm>

#include "halftone/graph/nn/module_util.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

template <typename Entries>
auto FindNamed(Entries& entries, const std::string& name) -> decltype(&entries.front()) {
  const auto it = std::find_if(entries.begin(), entries.end(),
                               [&name](const auto& entry) { return entry.name == name; });
  return it == entries.end() ? nullptr : &*it;
}

// That the optimizer can keep a parameter, by its type.
absl::Status CheckKeeps(const std::string& optimizer, const std::string& name,
                        const runtime::VariableStorage& parameter,
                        const optim::Optimizer& description) {
  const optim::Weights weights = description.step_options().weights;
  const DType dtype = parameter.dtype();
  if (weights != optim::Weights::kDeclared) {
    if (dtype == DType::kF32 || dtype == DType::kBF16) return absl::OkStatus();
    return InvalidArgument(optimizer, ": parameter \"", name, "\" is ", parameter.TypeString(),
                           "; expected f32, which weights = ", Name(weights), " keeps in bf16");
  }
  if (dtype == DType::kF32 || dtype == DType::kF64) return absl::OkStatus();
  return InvalidArgument(optimizer, ": parameter \"", name, "\" is ", parameter.TypeString(),
                         "; expected f32 or f64: keep parameters in f32, config.enable_amp ",
                         "computes with 16-bit copies of them; or in bf16 with the optimizer's ",
                         "weights = bf16_stochastic or bf16_kahan");
}

}  // namespace

void Declaration::Fail(Loc loc, const absl::Status& error) {
  if (!status_.ok()) return;
  const std::string where = internal::ToSourceLocation(loc).ToString();
  status_ = where.empty() ? error : Annotate(error, where + ": ");
}

void Declaration::BindState(const ir::Variable& variable, Loc loc, const Tensor& value) {
  Fail(loc, store_.Declare(variable, value).status());
}

ScalerEntry* Declaration::FindScaler(const std::string& scaler) {
  return FindNamed(scalers_, scaler);
}

const ScalerEntry* Declaration::FindScaler(const std::string& scaler) const {
  return FindNamed(scalers_, scaler);
}

OptimizerEntry* Declaration::FindOptimizer(const std::string& optimizer) {
  return FindNamed(optimizers_, optimizer);
}

void Declaration::AddModule(const std::string& name, Module& module, Loc loc) {
  if (!internal::MayChange(info_, "add_module", loc)) return;
  if (name.empty() || name.find_first_of("./\"") != std::string::npos) {
    Fail(loc, InvalidArgument("add_module: \"", name, "\" cannot name a module; expected a ",
                              "non-empty name without '.', '/' and '\"'"));
    return;
  }
  Add({name, &module, {}, loc});
}

void Declaration::AddParameter(const std::string& name, const Parameter& parameter, Loc loc) {
  if (!internal::MayChange(info_, "add_parameter", loc)) return;
  if (name.empty() || name.find_first_of("/\"") != std::string::npos) {
    Fail(loc, InvalidArgument("add_parameter: \"", name, "\" cannot name a parameter; expected ",
                              "a non-empty name without '/' and '\"'"));
  } else if (!parameter.defined()) {
    Fail(loc,
         InvalidArgument("add_parameter: \"", name, "\" is undefined; expected one with a shape"));
  } else {
    Add({name, nullptr, parameter, loc});
  }
}

absl::StatusOr<std::vector<std::string>> Declaration::NamesForOptimizer(
    const std::string& optimizer, const optim::Optimizer& description) const {
  std::map<std::string, std::string> owners;
  for (const OptimizerEntry& other : optimizers_) {
    for (const std::string& parameter : other.parameter_names) owners[parameter] = other.name;
  }
  std::vector<std::string> names;
  for (size_t group = 0; group < description.groups().size(); ++group) {
    const std::string owner =
        description.groups().size() == 1 ? optimizer : Concat("group ", group, " of ", optimizer);
    for (const optim::ParameterRef& parameter : description.groups()[group].parameters) {
      const std::string* known = store_.NameOf(parameter.get());
      if (known == nullptr) {
        return FailedPrecondition(optimizer, ": a parameter belongs to no module of this graph; ",
                                  "expected add_module before add_optimizer");
      }
      const auto [taken, is_free] = owners.emplace(*known, owner);
      if (!is_free) {
        const bool own = std::find(names.begin(), names.end(), *known) != names.end();
        return InvalidArgument(optimizer, ": parameter \"", *known, "\" is already changed by ",
                               taken->second, "; expected one ", own ? "group" : "optimizer",
                               " a parameter");
      }
      HT_RETURN_IF_ERROR(CheckKeeps(optimizer, *known, *parameter, description));
      names.push_back(*known);
    }
  }
  return names;
}

absl::Status Declaration::KeepInBF16(optim::Optimizer& optimizer) {
  const optim::ParameterList parameters = optimizer.parameters();
  std::map<const runtime::VariableStorage*, std::shared_ptr<runtime::VariableStorage>> kept;
  for (const optim::ParameterRef& parameter : parameters) {
    if (parameter->dtype() == DType::kBF16) continue;  // by another graph that has the module
    const runtime::StateLock lock(parameter->guard());
    HT_RETURN_IF_ERROR(lock.status());
    HT_ASSIGN_OR_RETURN(kept[parameter.get()], parameter->KeptIn(DType::kBF16));
  }
  for (auto& [name, parameter] : NamedVariables()) {
    const auto found = kept.find(parameter.storage().get());
    if (found != kept.end()) parameter.Assign(found->second);
  }
  optimizer.ReplaceParameters([&kept](const optim::ParameterRef& parameter) {
    const auto found = kept.find(parameter.get());
    return optim::ParameterList{found == kept.end() ? parameter : found->second};
  });
  return UpdateNames().status();
}

std::string Declaration::AddOptimizer(const optim::Optimizer& given, Loc loc) {
  const std::string name = Concat("optimizer", optimizers_.size());
  optim::Optimizer optimizer = given;
  if (!internal::MayChange(info_, "add_optimizer", loc)) return name;
  const auto checked = [&]() -> absl::StatusOr<std::vector<std::string>> {
    HT_RETURN_IF_ERROR(UpdateNames().status());
    HT_RETURN_IF_ERROR(Annotate(optimizer.Validate(), name + ": "));
    const auto names = NamesForOptimizer(name, optimizer);
    if (!names.ok() || optimizer.step_options().weights == optim::Weights::kDeclared) return names;
    HT_RETURN_IF_ERROR(Annotate(KeepInBF16(optimizer), name + ": "));
    return NamesForOptimizer(name, optimizer);
  };
  absl::StatusOr<std::vector<std::string>> names = checked();
  if (!names.ok()) {
    Fail(loc, names.status());
    return name;
  }
  optimizers_.push_back({name, loc, optimizer, *std::move(names), {}});
  for (size_t group = 0; group < optimizer.groups().size(); ++group) {
    BindState({optim::LearningRateVariable(name, group),
               ir::ValueType{DType::kF32, Shape{}},
               ir::VariableKind::kOptimizer,
               false,
               {ir::Initializer::Kind::kConstant, optimizer.lr(group), 0}},
              loc);
  }
  info_.optimizers.push_back(name);
  BindState({optim::AppliedStepsVariable(name),
             ir::ValueType{DType::kI64, Shape{}},
             ir::VariableKind::kOptimizer,
             false,
             {}},
            loc);
  if (optimizer.step_options().ema.has_value()) BindAverages(optimizers_.back(), loc);
  return name;
}

// Before compiling, so that a state that was loaded can be evaluated.
void Declaration::BindAverages(const OptimizerEntry& entry, Loc loc) {
  const auto bind = [&](const std::string& name, const ir::ValueType& type) {
    BindState({name, type, ir::VariableKind::kOptimizer, false, {}}, loc);
  };
  bind(optim::EmaStepsVariable(entry.name), {DType::kI64, Shape{}});
  for (const std::string& parameter : entry.parameter_names) {
    const std::shared_ptr<runtime::VariableStorage> storage = store_.Find(parameter);
    bind(optim::SlotVariable(entry.name, parameter, optim::kEmaSlot),
         {storage->dtype(), storage->shape()});
  }
}

void Declaration::AddPlateau(const std::string& optimizer, const optim::ReduceLROnPlateau& plateau,
                             Loc loc) {
  if (!internal::MayChange(info_, "add_plateau", loc)) return;
  OptimizerEntry* entry = FindOptimizer(optimizer);
  if (entry == nullptr) {
    Fail(loc, FailedPrecondition("add_plateau: \"", optimizer, "\" is no optimizer of this graph; ",
                                 "expected what add_optimizer gave"));
  } else if (entry->plateau.has_value()) {
    Fail(loc, absl::AlreadyExistsError(
                  Concat("add_plateau was called twice for ", optimizer, "; expected once")));
  } else if (const absl::Status wrong = plateau.Validate(); !wrong.ok()) {
    Fail(loc, Annotate(wrong, optimizer + ": "));
  } else {
    entry->plateau = plateau;
    const auto bind = [&](const char* state, DType dtype, double value) {
      BindState({optim::PlateauVariable(optimizer, state),
                 ir::ValueType{dtype, Shape{}},
                 ir::VariableKind::kOptimizer,
                 false,
                 {ir::Initializer::Kind::kConstant, value, 0}},
                loc);
    };
    const optim::PlateauState start = plateau.Start();
    bind("best", DType::kF64, start.best);
    bind("num_bad_epochs", DType::kI64, 0);
    bind("cooldown_counter", DType::kI64, 0);
  }
}

std::string Declaration::NextScalerName() const { return Concat("scaler", scalers_.size()); }

void Declaration::FindScalerState(ScalerEntry& entry) const {
  entry.consecutive_skips = store_.Find(entry.name + ".consecutive_skips");
  entry.scale = store_.Find(entry.name + ".scale");
  entry.total_steps = store_.Find(entry.name + ".total_steps");
}

std::string Declaration::AddScaler(const amp::GradScaler& scaler, Loc loc) {
  std::string name = NextScalerName();
  if (!internal::MayChange(info_, "add_scaler", loc)) return name;
  if (const absl::Status wrong = scaler.Validate(); !wrong.ok()) {
    Fail(loc, Annotate(wrong, name + ": "));
    return name;
  }
  scalers_.push_back({name, std::make_shared<ScalerRule>(ScalerRule{scaler})});
  info_.scalers.push_back(name);
  if (scaler.is_enabled()) {
    const amp::GradScalerOptions& options = scaler.options();
    // The object may carry a state that was loaded into it.
    const std::map<std::string, Tensor> values = scaler.StateTensors(name);
    for (const ir::Variable& variable :
         amp::ScalerVariables(name, options.init_scale, options.hysteresis)) {
      BindState(variable, loc, values.at(variable.name));
    }
  }
  FindScalerState(scalers_.back());
  return name;
}

std::string Declaration::ShareScaler(const ScalerEntry* scaler, const Declaration* owner, Loc loc) {
  std::string name = NextScalerName();
  if (!internal::MayChange(info_, "add_scaler", loc)) return name;
  if (scaler == nullptr || owner == this) {
    Fail(loc, scaler == nullptr
                  ? FailedPrecondition(name, ": the handle is on no grad scaler; expected that of ",
                                       "another graph")
                  : InvalidArgument(name, ": ", scaler->name, " is of this graph; expected the ",
                                    "grad scaler of another one"));
    return name;
  }
  scalers_.push_back({name, scaler->rule, scaler->rule->version});
  info_.scalers.push_back(name);
  for (const ir::Variable& variable : amp::ScalerVariables("", 1, 1)) {
    const auto storage = owner->store().Find(scaler->name + variable.name);
    if (storage != nullptr) Fail(loc, store_.Bind(name + variable.name, storage));
  }
  FindScalerState(scalers_.back());
  return name;
}

std::string Declaration::SetGradScaler(const amp::GradScaler& scaler, Loc loc) {
  return SetDefaultScaler([&] { return AddScaler(scaler, loc); }, loc);
}

std::string Declaration::SetDefaultScaler(absl::FunctionRef<std::string()> add, Loc loc) {
  if (!internal::MayChange(info_, "set_grad_scaler", loc)) return "";
  if (!info_.default_scaler.empty()) {
    Fail(loc, absl::AlreadyExistsError(
                  "set_grad_scaler was called twice; add_scaler adds a further scaler"));
    return "";
  }
  const size_t before = scalers_.size();
  std::string name = add();
  if (scalers_.size() > before) info_.default_scaler = name;
  return name;
}

bool Declaration::TakeRuleChanges() {
  bool changed = false;
  for (ScalerEntry& entry : scalers_) {
    changed |= std::exchange(entry.compiled_version, entry.rule->version) != entry.rule->version;
  }
  return changed;
}

void Declaration::SetAutomaticScaler() {
  SetGradScaler(amp::GradScaler(), Loc::current());
  if (!scalers_.empty()) scalers_.back().automatic = true;
}

bool Declaration::MayGetAutomaticScaler(const GraphConfig& config) const {
  const std::optional<DType> dtype = config.amp_policy().dtype;
  return scalers_.empty() && config.amp_enabled() && dtype != DType::kBF16 && dtype != DType::kF8;
}

}  // namespace halftone::nn
