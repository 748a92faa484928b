#include "halftone/optim/update_rule.h"

namespace halftone::optim {
namespace {

// The attributes of `marker` named in `names`; an absent one keeps the update op's default.
ir::Attributes Pick(const ir::Attributes& marker, const std::vector<std::string>& names) {
  ir::Attributes picked;
  for (const std::string& name : names) {
    if (const ir::AttrValue* value = marker.Find(name)) picked.Set(name, *value);
  }
  return picked;
}

UpdateRule SGDRule(const ir::Attributes& marker) {
  UpdateRule rule;
  rule.op = "sgd_update";
  rule.attrs = Pick(marker, {"momentum", "dampening", "weight_decay", "nesterov", "clip_value"});
  if (marker.GetFloat("momentum") != 0) rule.slots = {"momentum_buffer"};
  return rule;
}

UpdateRule AdamRule(const ir::Attributes& marker, bool decoupled) {
  UpdateRule rule;
  rule.op = "adam_update";
  rule.attrs = Pick(marker, {"beta1", "beta2", "eps", "weight_decay", "clip_value"});
  rule.attrs.Set("decoupled", decoupled);
  rule.slots = {"exp_avg", "exp_avg_sq"};
  return rule;
}

}  // namespace

absl::StatusOr<UpdateRule> RuleOfMarker(const ir::Attributes& marker) {
  const std::string& rule = marker.GetString("rule");
  if (rule == "sgd") return SGDRule(marker);
  if (rule == "adam") return AdamRule(marker, false);
  if (rule == "adamw") return AdamRule(marker, true);
  return InvalidArgument("optimizer \"", marker.GetString("name"), "\": rule \"", rule,
                         "\" is unknown; expected sgd, adam or adamw");
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

std::string SlotVariable(const std::string& optimizer, const std::string& parameter,
                         const std::string& slot) {
  return optimizer + "." + parameter + "." + slot;
}

}  // namespace halftone::optim
