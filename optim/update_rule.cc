#include "halftone/optim/update_rule.h"

#include <optional>

#include "halftone/core/philox.h"
#include "halftone/graph/ops/support/optimizers.h"

namespace halftone::optim {
namespace {

template <typename Update>
UpdateRule RuleOf(const Update& update) {
  UpdateRule rule;
  rule.op = ops::kUpdateInfo<Update>.op;
  if constexpr (ops::kIsRowWise<Update>) {
    const ops::RowWiseInfo rows = RowWiseOf(update);
    if (rows.holds) rule.rows_op = ops::RowUpdateOp<Update>();
    rule.only_rows = rows.only;
  }
  ops::HypersOf<Update>::ForEach(update, [&rule](const ops::HyperInfo& info, const auto& value) {
    rule.attrs.Set(info.name, value);
  });
  for (const ops::StateInfo& state : ops::StatesThere(update)) {
    rule.slots.push_back({state.name, state.initial});
  }
  return rule;
}

// "sgd, adam or adamw"
std::string OneOf(const std::vector<std::string>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    text += Concat(i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ", choices[i]);
  }
  return text;
}

}  // namespace

absl::StatusOr<UpdateRule> RuleOfMarker(const ir::Attributes& marker) {
  const std::string& name = marker.GetString("rule");
  std::optional<UpdateRule> rule;
  ops::ForEachOptimizer([&](const ops::OptimizerInfo& info, const auto& update) {
    if (name == info.rule) rule = RuleOf(ops::WithAttributes(update, marker));
  });
  if (rule.has_value()) {
    const std::string& rounding = marker.GetString("rounding");
    rule->attrs.Set("rounding", rounding);
    if (rounding == ops::Name(ops::UpdateRounding::kKahan)) {
      rule->slots.push_back({ops::kCompensation, 0});
    }
    return *std::move(rule);
  }
  return InvalidArgument("optimizer \"", marker.GetString("name"), "\": rule \"", name,
                         "\" is unknown; expected ", OneOf(ops::OptimizerRules()));
}

std::string RowWiseRules() {
  std::vector<std::string> rules;
  ops::ForEachUpdate([&rules](const auto& update) {
    const ops::RowWiseInfo rows = RowWiseOf(update);
    if (*rows.expected != '\0') rules.emplace_back(rows.expected);
  });
  return OneOf(rules);
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

int64_t RoundingSeed(int64_t seed, const std::string& optimizer, const std::string& parameter) {
  const std::string key = Concat(seed, "/", SlotVariable(optimizer, parameter, "rounding"));
  // Attributes are signed; one bit less of seed costs nothing.
  return static_cast<int64_t>(HashName(key.data(), key.size()) >> 1);
}

ir::ValueType GradSumType(const ir::ValueType& parameter) {
  return {Promote(parameter.dtype, DType::kF32), parameter.shape};
}

std::string WindowFiniteVariable(const std::string& scaler) { return scaler + ".window_finite"; }

}  // namespace halftone::optim
