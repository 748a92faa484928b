#include "halftone/optim/optimizer.h"

#include <cmath>
#include <set>

namespace halftone::optim {
namespace {

template <typename Options>
StepOptions StepOf(const Options& o) {
  return {o.lr_schedule, o.clip_norm, o.scaler, o.skip};
}

ir::Attributes SGDHyper(const SGDOptions& o) {
  return {{"lr", o.lr},
          {"momentum", o.momentum},
          {"dampening", o.dampening},
          {"weight_decay", o.weight_decay},
          {"nesterov", o.nesterov}};
}

template <typename Options>
ir::Attributes AdamHyper(const Options& o) {
  return {{"lr", o.lr},
          {"beta1", o.betas[0]},
          {"beta2", o.betas[1]},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay}};
}

// What PyTorch calls the rule, for messages.
const char* Title(const std::string& rule) {
  return rule == "sgd" ? "SGD" : rule == "adam" ? "Adam" : "AdamW";
}

}  // namespace

const char* Name(SkipPolicy policy) { return policy == SkipPolicy::kAny ? "any" : "own"; }

absl::Status Optimizer::Validate() const {
  const char* title = Title(rule_);
  auto range = [&](const char* option, double value, bool ok, const char* expected) {
    return ok ? absl::OkStatus()
              : InvalidArgument(title, ": ", option, " = ", value, "; expected ", expected);
  };
  for (const char* option : {"lr", "momentum", "weight_decay", "eps"}) {
    if (!hyper_.Has(option)) continue;
    double x = hyper_.GetFloat(option);
    HT_RETURN_IF_ERROR(range(option, x, std::isfinite(x) && x >= 0, "a finite number >= 0"));
  }
  for (const char* option : {"beta1", "beta2"}) {
    if (!hyper_.Has(option)) continue;
    double x = hyper_.GetFloat(option);
    HT_RETURN_IF_ERROR(range(option, x, x >= 0 && x < 1, "0 <= beta < 1"));
  }
  if (rule_ == "sgd") {
    double dampening = hyper_.GetFloat("dampening");
    HT_RETURN_IF_ERROR(range("dampening", dampening, std::isfinite(dampening), "a finite number"));
    if (hyper_.GetBool("nesterov") && (hyper_.GetFloat("momentum") == 0 || dampening != 0)) {
      return InvalidArgument(
          title, ": nesterov = true with momentum = ", hyper_.GetFloat("momentum"),
          ", dampening = ", dampening, "; expected momentum > 0 and dampening = 0");
    }
  }
  HT_RETURN_IF_ERROR(range("clip_norm", step_.clip_norm,
                           std::isfinite(step_.clip_norm) && step_.clip_norm >= 0,
                           "a finite number >= 0 (0: off)"));
  HT_RETURN_IF_ERROR(Annotate(step_.lr_schedule.Validate(), Concat(title, ": lr_schedule: ")));
  if (parameters_.empty()) {
    return InvalidArgument(title, ": no parameters; expected one or more");
  }
  std::set<const runtime::VariableStorage*> seen;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i] == nullptr) {
      return InvalidArgument(title, ": parameter ", i, " is null; expected a module's parameter");
    }
    if (!seen.insert(parameters_[i].get()).second) {
      return InvalidArgument(title, ": parameter ", i, " is listed twice; expected each once");
    }
  }
  return absl::OkStatus();
}

void Optimizer::ReplaceParameters(const std::function<ParameterList(const ParameterRef&)>& now) {
  ParameterList all;
  std::set<const runtime::VariableStorage*> seen;
  for (const ParameterRef& parameter : parameters_) {
    for (ParameterRef& successor : now(parameter)) {
      if (seen.insert(successor.get()).second) all.push_back(std::move(successor));
    }
  }
  parameters_ = std::move(all);
}

ir::Attributes Optimizer::ToMarker(const std::string& name,
                                   const std::vector<std::string>& names) const {
  HT_CHECK(names.size() == parameters_.size(), "one name per parameter");
  ir::Attributes marker = hyper_;
  marker.Set("name", name);
  marker.Set("rule", rule_);
  marker.Set("params", names);
  marker.Set("schedule", step_.lr_schedule.ToString());
  marker.Set("scaler", step_.scaler);
  marker.Set("skip", std::string(Name(step_.skip)));
  marker.Set("clip_norm", step_.clip_norm);
  return marker;
}

SGD::SGD(ParameterList parameters, SGDOptions options)
    : Optimizer("sgd", std::move(parameters), SGDHyper(options), StepOf(options)) {}

Adam::Adam(ParameterList parameters, AdamOptions options)
    : Optimizer("adam", std::move(parameters), AdamHyper(options), StepOf(options)) {}

AdamW::AdamW(ParameterList parameters, AdamWOptions options)
    : Optimizer("adamw", std::move(parameters), AdamHyper(options), StepOf(options)) {}

}  // namespace halftone::optim
