// The declaration side of nn::Graph: add_module, add_parameter, add_optimizer, set_grad_scaler.
// Runs in the user's constructor; mistakes are kept and returned by the first call.
#include <algorithm>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {

void Graph::Impl::BindState(const ir::Variable& variable, Loc loc, const Tensor& value) {
  Fail(loc, store.Declare(variable, value).status());
}

ScalerEntry* Graph::Impl::FindScaler(const std::string& scaler) {
  const auto it = std::find_if(scalers.begin(), scalers.end(),
                               [&](const ScalerEntry& s) { return s.name == scaler; });
  return it == scalers.end() ? nullptr : &*it;
}

OptimizerEntry* Graph::Impl::FindOptimizer(const std::string& optimizer) {
  const auto it = std::find_if(optimizers.begin(), optimizers.end(),
                               [&](const OptimizerEntry& o) { return o.name == optimizer; });
  return it == optimizers.end() ? nullptr : &*it;
}

void Graph::add_module(const std::string& name, Module& module, Loc loc) {
  if (!internal::MayChange(impl_->info, "add_module", loc)) return;
  if (name.empty() || name.find_first_of("./\"") != std::string::npos) {
    impl_->Fail(loc, InvalidArgument("add_module: \"", name, "\" cannot name a module; expected a ",
                                     "non-empty name without '.', '/' and '\"'"));
    return;
  }
  impl_->Add({name, &module, {}, loc});
}

void Graph::add_parameter(const std::string& name, const Parameter& parameter, Loc loc) {
  if (!internal::MayChange(impl_->info, "add_parameter", loc)) return;
  if (name.empty() || name.find_first_of("/\"") != std::string::npos) {
    impl_->Fail(loc,
                InvalidArgument("add_parameter: \"", name, "\" cannot name a parameter; expected ",
                                "a non-empty name without '/' and '\"'"));
  } else if (!parameter.defined()) {
    impl_->Fail(loc, InvalidArgument("add_parameter: \"", name,
                                     "\" is undefined; expected one with a shape"));
  } else {
    impl_->Add({name, nullptr, parameter, loc});
  }
}

std::vector<std::pair<std::string, Parameter>> Graph::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> named;
  for (const auto& variable : impl_->NamedVariables()) {
    const bool is_parameter = variable.second.storage()->kind() == ir::VariableKind::kParameter;
    if (is_parameter) named.push_back(variable);
  }
  return named;
}

optim::ParameterList Graph::parameters() const {
  return internal::DistinctStorages(named_parameters());
}

ParameterSplit Graph::split_parameters(const std::vector<std::string>& patterns, Loc loc) {
  absl::StatusOr<ParameterSplit> split = nn::split_parameters(named_parameters(), patterns);
  impl_->Fail(loc, split.status());
  return split.ok() ? *std::move(split) : ParameterSplit();
}

absl::StatusOr<std::vector<std::string>> Graph::Impl::NamesForOptimizer(
    const std::string& optimizer, const optim::Optimizer& description) const {
  std::map<std::string, std::string> owners;
  for (const OptimizerEntry& other : optimizers) {
    for (const std::string& parameter : other.parameter_names) owners[parameter] = other.name;
  }
  std::vector<std::string> names;
  for (size_t group = 0; group < description.groups().size(); ++group) {
    const std::string owner =
        description.groups().size() == 1 ? optimizer : Concat("group ", group, " of ", optimizer);
    for (const optim::ParameterRef& parameter : description.groups()[group].parameters) {
      const std::string* known = store.NameOf(parameter.get());
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
      if (parameter->dtype() != DType::kF32 && parameter->dtype() != DType::kF64) {
        return InvalidArgument(optimizer, ": parameter \"", *known, "\" is ",
                               parameter->TypeString(),
                               "; expected f32 or f64: keep parameters in f32, config.enable_amp ",
                               "computes with 16-bit copies of them");
      }
      names.push_back(*known);
    }
  }
  return names;
}

OptimizerHandle Graph::add_optimizer(const optim::Optimizer& optimizer, Loc loc) {
  Impl& impl = *impl_;
  const std::string name = Concat("optimizer", impl.optimizers.size());
  if (!internal::MayChange(impl.info, "add_optimizer", loc)) return OptimizerHandle(this, name);
  const auto checked = [&]() -> absl::StatusOr<std::vector<std::string>> {
    HT_RETURN_IF_ERROR(impl.UpdateNames().status());
    HT_RETURN_IF_ERROR(Annotate(optimizer.Validate(), name + ": "));
    return impl.NamesForOptimizer(name, optimizer);
  };
  absl::StatusOr<std::vector<std::string>> names = checked();
  if (!names.ok()) {
    impl.Fail(loc, names.status());
    return OptimizerHandle(this, name);
  }
  impl.optimizers.push_back({name, loc, optimizer, *std::move(names), {}});
  for (size_t group = 0; group < optimizer.groups().size(); ++group) {
    impl.BindState({optim::LearningRateVariable(name, group),
                    ir::ValueType{DType::kF32, Shape{}},
                    ir::VariableKind::kOptimizer,
                    false,
                    {ir::Initializer::Kind::kConstant, optimizer.lr(group), 0}},
                   loc);
  }
  impl.info.optimizers.push_back(name);
  impl.BindState({optim::AppliedStepsVariable(name),
                  ir::ValueType{DType::kI64, Shape{}},
                  ir::VariableKind::kOptimizer,
                  false,
                  {}},
                 loc);
  return OptimizerHandle(this, name);
}

ScalerHandle Graph::add_scaler(const amp::GradScaler& scaler, Loc loc) {
  Impl& impl = *impl_;
  const std::string name = Concat("scaler", impl.scalers.size());
  if (!internal::MayChange(impl.info, "add_scaler", loc)) return ScalerHandle(this, name);
  if (const absl::Status wrong = scaler.Validate(); !wrong.ok()) {
    impl.Fail(loc, Annotate(wrong, name + ": "));
    return ScalerHandle(this, name);
  }
  impl.scalers.push_back({name, scaler});
  impl.info.scalers.push_back(name);
  if (scaler.is_enabled()) {
    const amp::GradScalerOptions& options = scaler.options();
    // The object may carry a state that was loaded into it.
    const std::map<std::string, Tensor> values = scaler.StateTensors(name);
    for (const ir::Variable& variable :
         amp::ScalerVariables(name, options.init_scale, options.hysteresis)) {
      impl.BindState(variable, loc, values.at(variable.name));
    }
    impl.scalers.back().consecutive_skips = impl.store.Find(name + ".consecutive_skips");
    impl.scalers.back().scale = impl.store.Find(name + ".scale");
  }
  return ScalerHandle(this, name);
}

ScalerHandle Graph::grad_scaler() { return ScalerHandle(this, ""); }

absl::Status Graph::Impl::AddAutomaticScaler(Graph& graph) {
  if (!scalers.empty() || !graph.config.amp_enabled()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const std::optional<DType> low, LowType(graph.config));
  if (low != DType::kF16) return absl::OkStatus();
  graph.set_grad_scaler(amp::GradScaler());
  scalers.back().automatic = true;
  return status;
}

ScalerHandle Graph::set_grad_scaler(const amp::GradScaler& scaler, Loc loc) {
  if (!internal::MayChange(impl_->info, "set_grad_scaler", loc)) return grad_scaler();
  if (!impl_->info.default_scaler.empty()) {
    impl_->Fail(loc, absl::AlreadyExistsError(
                         "set_grad_scaler was called twice; add_scaler adds a further scaler"));
    return grad_scaler();
  }
  const size_t before = impl_->scalers.size();
  ScalerHandle handle = add_scaler(scaler, loc);
  if (impl_->scalers.size() > before) impl_->info.default_scaler = handle.name();
  return handle;
}

}  // namespace halftone::nn
