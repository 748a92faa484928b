#include "halftone/optim/grad_scaler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace halftone::amp {
namespace {

bool FitsF32(double x) { return std::isfinite(static_cast<float>(x)); }

absl::Status Range(const char* option, double value, bool ok, const char* expected) {
  if (ok) return absl::OkStatus();
  return InvalidArgument("GradScaler: ", option, " = ", value, "; expected ", expected);
}

absl::Status ValidateOptions(const GradScalerOptions& o) {
  HT_RETURN_IF_ERROR(Range("init_scale", o.init_scale, IsLossScale(o.init_scale), kLossScaleRange));
  HT_RETURN_IF_ERROR(Range("growth_factor", o.growth_factor,
                           o.growth_factor > 1 && std::isfinite(o.growth_factor), "> 1"));
  HT_RETURN_IF_ERROR(Range("backoff_factor", o.backoff_factor,
                           o.backoff_factor > 0 && o.backoff_factor < 1, "0 < factor < 1"));
  HT_RETURN_IF_ERROR(
      Range("growth_interval", o.growth_interval,
            o.growth_interval > 0 && o.growth_interval <= std::numeric_limits<int32_t>::max(),
            "1 to 2147483647"));
  HT_RETURN_IF_ERROR(Range("min_scale", o.min_scale, IsLossScale(o.min_scale), kLossScaleRange));
  HT_RETURN_IF_ERROR(Range("max_scale", o.max_scale,
                           FitsF32(o.max_scale) && o.max_scale >= o.min_scale,
                           "a finite f32 >= min_scale"));
  HT_RETURN_IF_ERROR(Range("hysteresis", o.hysteresis,
                           o.hysteresis > 0 && o.hysteresis <= std::numeric_limits<int32_t>::max(),
                           "1 to 2147483647"));
  return Range("max_consecutive_skips", o.max_consecutive_skips, o.max_consecutive_skips >= 0,
               ">= 0 (0: no limit)");
}

// One number of a state dictionary: how to read and write it.
struct Key {
  const char* name;
  bool required;     // PyTorch writes it
  double max_whole;  // largest value of a whole number; 0: a real number
  std::function<double(const GradScalerOptions&, const GradScalerState&)> get;
  std::function<void(GradScalerOptions&, GradScalerState&, double)> set;
};

template <typename T>
Key OptionKey(const char* name, bool required, double max_whole, T GradScalerOptions::*field) {
  return {name, required, max_whole,
          [field](const auto& o, const auto&) { return static_cast<double>(o.*field); },
          [field](auto& o, auto&, double x) { o.*field = static_cast<T>(x); }};
}

template <typename T>
Key StateKey(const char* name, bool required, double max_whole, T GradScalerState::*field) {
  return {name, required, max_whole,
          [field](const auto&, const auto& s) { return static_cast<double>(s.*field); },
          [field](auto&, auto& s, double x) { s.*field = static_cast<T>(x); }};
}

constexpr double kMaxI32 = std::numeric_limits<int32_t>::max();
constexpr double kMaxExact = 0x1p53;

const std::vector<Key>& Keys() {
  using O = GradScalerOptions;
  using S = GradScalerState;
  static const std::vector<Key> keys = {
      StateKey("scale", true, 0, &S::scale),
      OptionKey("growth_factor", true, 0, &O::growth_factor),
      OptionKey("backoff_factor", true, 0, &O::backoff_factor),
      OptionKey("growth_interval", true, kMaxI32, &O::growth_interval),
      StateKey("_growth_tracker", true, kMaxI32, &S::growth_tracker),
      OptionKey("halftone.dynamic", false, 1, &O::dynamic),
      OptionKey("halftone.min_scale", false, 0, &O::min_scale),
      OptionKey("halftone.max_scale", false, 0, &O::max_scale),
      OptionKey("halftone.hysteresis", false, kMaxI32, &O::hysteresis),
      StateKey("halftone.hysteresis_left", false, kMaxI32, &S::hysteresis_left),
      OptionKey("halftone.max_consecutive_skips", false, kMaxExact, &O::max_consecutive_skips),
      StateKey("halftone.total_steps", false, kMaxExact, &S::total_steps),
      StateKey("halftone.skipped_steps", false, kMaxExact, &S::skipped_steps),
      StateKey("halftone.consecutive_skips", false, kMaxExact, &S::consecutive_skips),
  };
  return keys;
}

}  // namespace

const char* Name(ScaleChange::Cause cause) {
  switch (cause) {
    case ScaleChange::Cause::kOverflow:
      return "overflow";
    case ScaleChange::Cause::kGrowth:
      return "growth";
    case ScaleChange::Cause::kSet:
      return "set";
  }
  return "";
}

std::vector<ScaleChange> ScaleHistory::changes() const {
  std::vector<ScaleChange> changes;
  for (size_t i = count_ - std::min(count_, kCapacity); i < count_; ++i) {
    changes.push_back(changes_[i % kCapacity]);
  }
  return changes;
}

bool IsLossScale(double scale) {
  const auto in_f32 = static_cast<float>(scale);
  return in_f32 > 0 && std::isfinite(in_f32) && FitsF32(1 / static_cast<double>(in_f32));
}

GradScaler::GradScaler(GradScalerOptions options) : options_(options) {
  state_.scale = static_cast<float>(options_.init_scale);
  state_.hysteresis_left = static_cast<int32_t>(options_.hysteresis);
}

const char* GradScaler::mode() const {
  return !options_.enabled ? "disabled" : options_.dynamic ? "dynamic" : "static";
}

absl::Status GradScaler::Validate() const { return ValidateOptions(options_); }

StateDict GradScaler::state_dict() const {
  StateDict dict;
  if (!options_.enabled) return dict;
  for (const Key& key : Keys()) dict[key.name] = key.get(options_, state_);
  return dict;
}

absl::Status GradScaler::load_state_dict(const StateDict& dict) {
  if (!options_.enabled) return absl::OkStatus();
  GradScalerOptions options = options_;
  GradScalerState state;
  std::set<std::string> known;
  bool has_hysteresis_left = false;
  for (const Key& key : Keys()) {
    known.insert(key.name);
    auto it = dict.find(key.name);
    if (it == dict.end()) {
      if (!key.required) continue;
      return InvalidArgument("GradScaler: state has no \"", key.name,
                             "\"; expected PyTorch's five keys");
    }
    const double x = it->second;
    if (key.max_whole > 0 && !(x >= 0 && x <= key.max_whole && x == std::floor(x))) {
      return InvalidArgument("GradScaler: state \"", key.name, "\" = ", x,
                             "; expected a whole number from 0 to ", key.max_whole);
    }
    has_hysteresis_left |= it->first == "halftone.hysteresis_left";
    key.set(options, state, it->second);
  }
  for (const auto& [name, value] : dict) {
    if (!known.count(name)) {
      return InvalidArgument("GradScaler: state has an unknown key \"", name, "\"");
    }
  }
  if (!has_hysteresis_left) state.hysteresis_left = static_cast<int32_t>(options.hysteresis);
  HT_RETURN_IF_ERROR(ValidateOptions(options));
  HT_RETURN_IF_ERROR(Range("scale", state.scale, IsLossScale(state.scale), kLossScaleRange));
  options_ = options;
  state_ = state;
  return absl::OkStatus();
}

ir::Attributes GradScaler::ToMarker(const std::string& name, bool automatic) const {
  return {{"name", name},
          {"mode", std::string(mode())},
          {"automatic", automatic},
          {"init_scale", options_.init_scale},
          {"growth_factor", options_.growth_factor},
          {"backoff_factor", options_.backoff_factor},
          {"growth_interval", options_.growth_interval},
          {"min_scale", options_.min_scale},
          {"max_scale", options_.max_scale},
          {"hysteresis", options_.hysteresis},
          {"max_consecutive_skips", options_.max_consecutive_skips}};
}

std::vector<ir::Variable> ScalerVariables(const std::string& name, double init_scale,
                                          int64_t hysteresis) {
  auto variable = [&](const char* field, DType dtype, double value) {
    ir::Variable v;
    v.name = name + "." + field;
    v.type.dtype = dtype;
    v.kind = ir::VariableKind::kScaler;
    v.trainable = false;
    v.init.a = value;
    return v;
  };
  return {variable("scale", DType::kF32, init_scale),
          variable("growth_tracker", DType::kI32, 0),
          variable("hysteresis_left", DType::kI32, static_cast<double>(hysteresis)),
          variable("total_steps", DType::kI64, 0),
          variable("skipped_steps", DType::kI64, 0),
          variable("consecutive_skips", DType::kI64, 0)};
}

std::map<std::string, Tensor> GradScaler::StateTensors(const std::string& name) const {
  const double values[] = {state_.scale,
                           static_cast<double>(state_.growth_tracker),
                           static_cast<double>(state_.hysteresis_left),
                           static_cast<double>(state_.total_steps),
                           static_cast<double>(state_.skipped_steps),
                           static_cast<double>(state_.consecutive_skips)};
  std::map<std::string, Tensor> tensors;
  const std::vector<ir::Variable> variables =
      ScalerVariables(name, options_.init_scale, options_.hysteresis);
  for (size_t i = 0; i < variables.size(); ++i) {
    tensors[variables[i].name] = Tensor::Scalar(variables[i].type.dtype, values[i]);
  }
  return tensors;
}

absl::Status GradScaler::SetStateTensors(const std::string& name,
                                         const std::map<std::string, Tensor>& values) {
  std::vector<const Tensor*> found;
  for (const ir::Variable& v : ScalerVariables(name, options_.init_scale, options_.hysteresis)) {
    auto it = values.find(v.name);
    if (it == values.end()) return NotFound("GradScaler: no variable \"", v.name, "\"");
    if (it->second.dtype() != v.type.dtype || it->second.num_elements() != 1) {
      return InvalidArgument("GradScaler: variable \"", v.name, "\" is ", it->second.TypeString(),
                             "; expected ", v.type.ToString());
    }
    found.push_back(&it->second);
  }
  state_.scale = static_cast<float>(found[0]->at(0));
  state_.growth_tracker = static_cast<int32_t>(found[1]->at(0));
  state_.hysteresis_left = static_cast<int32_t>(found[2]->at(0));
  state_.total_steps = static_cast<int64_t>(found[3]->at(0));
  state_.skipped_steps = static_cast<int64_t>(found[4]->at(0));
  state_.consecutive_skips = static_cast<int64_t>(found[5]->at(0));
  return absl::OkStatus();
}

absl::Status CheckConsecutiveSkips(const std::string& name, int64_t consecutive_skips,
                                   int64_t limit, const std::string& first_bad_parameter) {
  if (limit == 0 || consecutive_skips <= limit) return absl::OkStatus();
  return FailedPrecondition(
      name, ": ", consecutive_skips, " steps in a row were skipped; limit ", limit,
      "; first non-finite gradient: ",
      first_bad_parameter.empty() ? std::string("unknown") : first_bad_parameter);
}

}  // namespace halftone::amp
