// What constructors of graphs call.
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
  if (name.empty() || name.find_first_of("./\"") != std::string::npos) {
    impl_->Fail(loc, InvalidArgument("add_module: \"", name, "\" cannot name a module; expected a ",
                                     "non-empty name without '.', '/' and '\"'"));
    return;
  }
  impl_->Fail(loc, Annotate(module.status(), "module \"" + name + "\": "));
  impl_->Add({name, &module, {}, loc});
}

void Graph::add_parameter(const std::string& name, const Parameter& parameter, Loc loc) {
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

OptimizerHandle Graph::add_optimizer(const optim::Optimizer& optimizer, Loc loc) {
  Impl& impl = *impl_;
  const std::string name = Concat("optimizer", impl.optimizers.size());
  impl.Fail(loc, impl.UpdateNames().status());
  impl.Fail(loc, Annotate(optimizer.Validate(), name + ": "));
  std::vector<std::string> names;
  for (const optim::ParameterRef& parameter : optimizer.parameters()) {
    const std::string* known = impl.store.NameOf(parameter.get());
    if (known == nullptr) {
      impl.Fail(loc, FailedPrecondition(name, ": a parameter belongs to no module of this graph; ",
                                        "expected add_module before add_optimizer"));
      return OptimizerHandle(this, name);
    }
    for (const OptimizerEntry& other : impl.optimizers) {
      const auto& taken = other.parameter_names;
      if (std::find(taken.begin(), taken.end(), *known) == taken.end()) continue;
      impl.Fail(loc, InvalidArgument(name, ": parameter \"", *known, "\" is already changed by ",
                                     other.name, "; expected one optimizer a parameter"));
    }
    names.push_back(*known);
  }
  impl.optimizers.push_back({name, loc, optimizer, std::move(names), {}});
  const double lr = optimizer.lr();
  impl.BindState({optim::LearningRateVariable(name),
                  ir::ValueType{DType::kF32, Shape{}},
                  ir::VariableKind::kOptimizer,
                  false,
                  {ir::Initializer::Kind::kConstant, lr, 0}},
                 loc);
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
  impl.Fail(loc, Annotate(scaler.Validate(), name + ": "));
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
  }
  return ScalerHandle(this, name);
}

ScalerHandle Graph::grad_scaler() { return ScalerHandle(this, impl_->info.default_scaler); }

ScalerHandle Graph::set_grad_scaler(const amp::GradScaler& scaler, Loc loc) {
  if (!impl_->info.default_scaler.empty()) {
    impl_->Fail(loc, absl::AlreadyExistsError(
                         "set_grad_scaler was called twice; add_scaler adds a further scaler"));
  }
  ScalerHandle handle = add_scaler(scaler, loc);
  impl_->info.default_scaler = handle.name();
  return handle;
}

}  // namespace halftone::nn
