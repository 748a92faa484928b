#include "halftone/optim/optimizer.h"

#include <cmath>
#include <set>

#include "halftone/core/dtype.h"

namespace halftone::optim {
namespace {

constexpr char kFiniteNotNegative[] = "a number >= 0 that is finite in f32";

bool IsFinite(double x) { return std::abs(x) <= MaxFinite(DType::kF32); }

// What PyTorch calls the rule, for messages.
const char* Title(const std::string& rule) {
  return rule == "sgd" ? "SGD" : rule == "adam" ? "Adam" : "AdamW";
}

absl::Status CheckRange(const std::string& title, const char* option, double value, bool holds,
                        const char* expected) {
  if (holds) return absl::OkStatus();
  return InvalidArgument(title, ": ", option, " = ", value, "; expected ", expected);
}

// A tied weight has several names, and a list made by names has it several times.
ParameterList Distinct(const ParameterList& parameters) {
  ParameterList distinct;
  std::set<const runtime::VariableStorage*> seen;
  for (const ParameterRef& parameter : parameters) {
    if (seen.insert(parameter.get()).second) distinct.push_back(parameter);
  }
  return distinct;
}

}  // namespace

const char* Name(SkipPolicy policy) { return policy == SkipPolicy::kAny ? "any" : "own"; }

void internal::SetAttr(ir::Attributes& attrs, const char* option, double value) {
  attrs.Set(option, value);
}
void internal::SetAttr(ir::Attributes& attrs, const char* option, bool value) {
  attrs.Set(option, value);
}
void internal::SetAttr(ir::Attributes& attrs, const char*, const std::array<double, 2>& betas) {
  attrs.Set("beta1", betas[0]);
  attrs.Set("beta2", betas[1]);
}
void internal::SetAttr(ir::Attributes& attrs, const char*, const LRSchedule& schedule) {
  attrs.Set("schedule", schedule.ToString());
}

Optimizer::Optimizer(std::string rule, std::vector<ParameterGroup> groups, ir::Attributes hyper,
                     StepOptions step)
    : rule_(std::move(rule)),
      groups_(std::move(groups)),
      hyper_(std::move(hyper)),
      step_(std::move(step)) {
  for (ParameterGroup& group : groups_) group.parameters = Distinct(group.parameters);
}

ParameterList Optimizer::parameters() const {
  ParameterList all;
  for (const ParameterGroup& group : groups_) {
    all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  }
  return all;
}

void Optimizer::ReplaceParameters(const std::function<ParameterList(const ParameterRef&)>& now) {
  for (ParameterGroup& group : groups_) {
    ParameterList successors;
    for (const ParameterRef& parameter : group.parameters) {
      for (ParameterRef& successor : now(parameter)) successors.push_back(std::move(successor));
    }
    group.parameters = Distinct(successors);
  }
}

ir::Attributes Optimizer::hyper_parameters(size_t group) const {
  ir::Attributes merged = hyper_;
  merged.Set("schedule", step_.lr_schedule.ToString());
  if (group < groups_.size()) {
    for (const auto& [name, value] : groups_[group].own.entries()) merged.Set(name, value);
  }
  return merged;
}

absl::Status Optimizer::Validate() const {
  const std::string title = Title(rule_);
  if (groups_.empty()) {
    return InvalidArgument(title, ": no parameters; expected one or more");
  }
  HT_RETURN_IF_ERROR(CheckRange(title, "clip_norm", step_.clip_norm,
                                IsFinite(step_.clip_norm) && step_.clip_norm >= 0,
                                "a number >= 0 that is finite in f32 (0: off)"));
  for (size_t i = 0; i < groups_.size(); ++i) {
    HT_RETURN_IF_ERROR(
        ValidateGroup(groups_.size() == 1 ? title : Concat(title, ": group ", i), i));
  }
  return absl::OkStatus();
}

absl::Status Optimizer::ValidateGroup(const std::string& title, size_t group) const {
  const ir::Attributes hyper = hyper_parameters(group);
  for (const char* option : {"lr", "momentum", "weight_decay", "eps"}) {
    if (!hyper.Has(option)) continue;
    const double x = hyper.GetFloat(option);
    HT_RETURN_IF_ERROR(CheckRange(title, option, x, IsFinite(x) && x >= 0, kFiniteNotNegative));
  }
  const double clip_value = hyper.GetFloat("clip_value");
  // A positive number that f32 makes 0 would turn clipping off.
  HT_RETURN_IF_ERROR(CheckRange(
      title, "clip_value", clip_value,
      clip_value == 0 || (clip_value >= MinSubnormal(DType::kF32) && IsFinite(clip_value)),
      "0 (off) or a positive number that f32 can hold"));
  for (const char* option : {"beta1", "beta2"}) {
    if (!hyper.Has(option)) continue;
    const double x = hyper.GetFloat(option);
    HT_RETURN_IF_ERROR(CheckRange(title, option, x, x >= 0 && x < 1, "0 <= beta < 1"));
  }
  if (rule_ == "sgd") {
    const double dampening = hyper.GetFloat("dampening");
    HT_RETURN_IF_ERROR(CheckRange(title, "dampening", dampening, IsFinite(dampening),
                                  "a number that is finite in f32"));
    if (hyper.GetBool("nesterov") && (hyper.GetFloat("momentum") == 0 || dampening != 0)) {
      return InvalidArgument(
          title, ": nesterov = true with momentum = ", hyper.GetFloat("momentum"),
          ", dampening = ", dampening, "; expected momentum > 0 and dampening = 0");
    }
  }
  HT_RETURN_IF_ERROR(Annotate(LRSchedule::Parse(hyper.GetString("schedule")).status(),
                              Concat(title, ": lr_schedule: ")));
  const ParameterList& parameters = groups_[group].parameters;
  if (parameters.empty()) {
    return InvalidArgument(title, ": no parameters; expected one or more");
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] != nullptr) continue;
    return InvalidArgument(title, ": parameter ", i, " is null; expected a module's parameter");
  }
  return absl::OkStatus();
}

ir::Attributes Optimizer::ToMarker(const std::string& name, const std::vector<std::string>& names,
                                   size_t group) const {
  HT_CHECK(group < groups_.size() && names.size() == groups_[group].parameters.size(),
           "one name per parameter");
  ir::Attributes marker = hyper_parameters(group);
  marker.Set("name", name);
  marker.Set("group", static_cast<int64_t>(group));
  marker.Set("rule", rule_);
  marker.Set("params", names);
  marker.Set("scaler", step_.scaler);
  marker.Set("skip", std::string(Name(step_.skip)));
  marker.Set("skip_nonfinite", step_.skip_nonfinite);
  marker.Set("clip_norm", step_.clip_norm);
  return marker;
}

}  // namespace halftone::optim
