#include "halftone/optim/update_rule.h"

#include <optional>

#include "halftone/graph/ops/support/optimizers.h"

namespace halftone::optim {
namespace {

template <typename Update>
UpdateRule RuleOf(const Update& update) {
  UpdateRule rule;
  rule.op = ops::kUpdateInfo<Update>.op;
  ops::HypersOf<Update>::ForEach(update, [&rule](const ops::HyperInfo& info, const auto& value) {
    rule.attrs.Set(info.name, value);
  });
  for (const ops::StateInfo& state : ops::StatesThere(update)) {
    rule.slots.push_back({state.name, state.initial});
  }
  return rule;
}

// "sgd, adam or adamw"
std::string KnownRules() {
  const std::vector<std::string> rules = ops::OptimizerRules();
  std::string known;
  for (size_t i = 0; i < rules.size(); ++i) {
    known += Concat(i == 0 ? "" : i + 1 == rules.size() ? " or " : ", ", rules[i]);
  }
  return known;
}

}  // namespace

absl::StatusOr<UpdateRule> RuleOfMarker(const ir::Attributes& marker) {
  const std::string& name = marker.GetString("rule");
  std::optional<UpdateRule> rule;
  ops::ForEachOptimizer([&](const ops::OptimizerInfo& info, const auto& update) {
    if (name == info.rule) rule = RuleOf(ops::WithAttributes(update, marker));
  });
  if (rule.has_value()) return *std::move(rule);
  return InvalidArgument("optimizer \"", marker.GetString("name"), "\": rule \"", name,
                         "\" is unknown; expected ", KnownRules());
}

std::string LearningRateVariable(const std::string& optimizer, size_t group) {
  return group == 0 ? optimizer + ".lr" : Concat(optimizer, ".group", group, ".lr");
}

std::string AppliedStepsVariable(const std::string& optimizer) {
  return optimizer + ".applied_steps";
}

std::string FirstNonFiniteVariable(const std::string& optimizer) {
  return optimizer + ".first_nonfinite";
}

std::string EmaStepsVariable(const std::string& optimizer) { return optimizer + ".ema_steps"; }

std::string PlateauVariable(const std::string& optimizer, const std::string& state) {
  return optimizer + ".plateau." + state;
}

std::string SlotVariable(const std::string& optimizer, const std::string& parameter,
                         const std::string& slot) {
  return optimizer + "." + parameter + "." + slot;
}

}  // namespace halftone::optim
