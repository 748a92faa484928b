#include "halftone/optim/optimizer.h"

#include <set>

#include "halftone/graph/ops/support/optimizers.h"

namespace halftone::optim {
namespace {

using ops::HyperOwner;

constexpr ops::Range kClipNorm{ops::kNotNegative.holds,
                               "a number >= 0 that is finite in f32 (0: off)", "", ""};
// A positive number that f32 makes 0 would turn clipping off.
constexpr ops::Range kClipValue{
    [](double x) { return x == 0 || (x >= MinSubnormal(DType::kF32) && ops::IsFiniteInF32(x)); },
    "0 (off) or a positive number that f32 can hold", "", ""};

// visit(info, update) for the optimizer of a rule.
template <typename Visit>
void WithRule(const std::string& rule, const Visit& visit) {
  ops::ForEachOptimizer([&](const ops::OptimizerInfo& info, const auto& update) {
    if (rule == info.rule) visit(info, update);
  });
}

ops::UpdateRounding RoundingOf(Weights weights) {
  switch (weights) {
    case Weights::kBF16Stochastic:
      return ops::UpdateRounding::kStochastic;
    case Weights::kBF16Kahan:
      return ops::UpdateRounding::kKahan;
    default:
      return ops::UpdateRounding::kNearest;
  }
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

const char* Name(Weights weights) {
  switch (weights) {
    case Weights::kBF16Stochastic:
      return "bf16_stochastic";
    case Weights::kBF16Kahan:
      return "bf16_kahan";
    default:
      return "declared";
  }
}

absl::StatusOr<Weights> ParseWeights(const std::string& name) {
  constexpr Weights kAll[] = {Weights::kDeclared, Weights::kBF16Stochastic, Weights::kBF16Kahan};
  for (const Weights weights : kAll) {
    if (name == Name(weights)) return weights;
  }
  return InvalidArgument("weights is \"", name, "\"; expected ", Name(kAll[0]), ", ", Name(kAll[1]),
                         " or ", Name(kAll[2]));
}

void internal::SetAttr(ir::Attributes& attrs, const char* const names[2], double value) {
  attrs.Set(names[0], value);
}
void internal::SetAttr(ir::Attributes& attrs, const char* const names[2], bool value) {
  attrs.Set(names[0], value);
}
void internal::SetAttr(ir::Attributes& attrs, const char* const names[2],
                       const std::array<double, 2>& values) {
  attrs.Set(names[0], values[0]);
  attrs.Set(names[1], values[1]);
}
void internal::SetAttr(ir::Attributes& attrs, const char* const names[2],
                       const LRSchedule& schedule) {
  attrs.Set(names[0], schedule.ToString());
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
  std::string title;
  WithRule(rule_, [&](const ops::OptimizerInfo& info, const auto&) { title = info.title; });
  if (groups_.empty()) {
    return InvalidArgument(title, ": no parameters; expected one or more");
  }
  HT_RETURN_IF_ERROR(
      CheckHyper(HyperOwner::kOption, title, "clip_norm", step_.clip_norm, kClipNorm));
  if (step_.ema.has_value()) {
    HT_RETURN_IF_ERROR(Annotate(step_.ema->Validate(), title + ": "));
    if (step_.weights != Weights::kDeclared) {
      return InvalidArgument(
          title, ": ema with weights = ", Name(step_.weights),
          ": an average in bf16 loses what it is to average; expected weights = ",
          Name(Weights::kDeclared), ", or no ema");
    }
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    HT_RETURN_IF_ERROR(
        ValidateGroup(groups_.size() == 1 ? title : Concat(title, ": group ", i), i));
  }
  return absl::OkStatus();
}

absl::Status Optimizer::ValidateGroup(const std::string& title, size_t group) const {
  const ir::Attributes hyper = hyper_parameters(group);
  for (const auto& [option, range] :
       {std::pair{"lr", ops::kNotNegative}, {"clip_value", kClipValue}}) {
    HT_RETURN_IF_ERROR(
        CheckHyper(HyperOwner::kOption, title, option, hyper.GetFloat(option), range));
  }
  absl::Status status;
  WithRule(rule_, [&](const ops::OptimizerInfo&, const auto& update) {
    status = CheckHypers(HyperOwner::kOption, title, ops::WithAttributes(update, hyper));
  });
  HT_RETURN_IF_ERROR(status);
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
  marker.Set("rounding", std::string(ops::Name(RoundingOf(step_.weights))));
  if (step_.ema.has_value()) step_.ema->AddTo(marker);
  return marker;
}

}  // namespace halftone::optim
