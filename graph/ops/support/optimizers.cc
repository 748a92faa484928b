#include "halftone/graph/ops/support/optimizers.h"

#include "halftone/core/check.h"

namespace halftone::ops {

const char* Name(UpdateRounding rounding) {
  switch (rounding) {
    case UpdateRounding::kStochastic:
      return "stochastic";
    case UpdateRounding::kKahan:
      return "kahan";
    default:
      return "nearest";
  }
}

std::optional<UpdateRounding> ParseUpdateRounding(const std::string& name) {
  for (const UpdateRounding rounding :
       {UpdateRounding::kNearest, UpdateRounding::kStochastic, UpdateRounding::kKahan}) {
    if (name == Name(rounding)) return rounding;
  }
  return std::nullopt;
}

UpdateRounding RoundingOf(const ir::Attributes& update) {
  const auto rounding = ParseUpdateRounding(update.GetString("rounding"));
  HT_CHECK(rounding.has_value(), "a rounding that no inference has seen");
  return *rounding;
}

std::vector<std::string> OptimizerRules() {
  std::vector<std::string> rules;
  ForEachOptimizer(
      [&rules](const OptimizerInfo& info, const auto&) { rules.emplace_back(info.rule); });
  return rules;
}

absl::Status CheckHyper(HyperOwner owner, const std::string& what, const char* name, double value,
                        const Range& range) {
  if (range.holds(value)) return absl::OkStatus();
  if (owner == HyperOwner::kOption) {
    return InvalidArgument(what, ": ", name, " = ", value, "; expected ", range.of_option);
  }
  const bool in_short = owner == HyperOwner::kUpdate && IsFiniteInF32(value);
  return InvalidArgument(what, ": ", name, " is ", value, "; expected ",
                         in_short ? range.of_update : range.of_marker);
}

absl::Status CheckNeed(HyperOwner owner, const std::string& what,
                       const std::optional<UnmetNeed>& unmet) {
  if (!unmet.has_value()) return absl::OkStatus();
  const UnmetNeed& u = *unmet;
  if (owner == HyperOwner::kOption) {
    return InvalidArgument(what, ": ", u.flag, " = true with ", u.names[0], " = ", u.values[0],
                           ", ", u.names[1], " = ", u.values[1], "; expected ", u.of_option);
  }
  return InvalidArgument(what, ": ", u.flag, " with ", u.names[0], " ", u.values[0], " and ",
                         u.names[1], " ", u.values[1], "; expected ", u.of_node);
}

}  // namespace halftone::ops
