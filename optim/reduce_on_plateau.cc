#include "halftone/optim/reduce_on_plateau.h"

#include <algorithm>
#include <limits>

#include "halftone/core/dtype.h"

namespace halftone::optim {

absl::Status ReduceLROnPlateau::Validate() const {
  const ReduceLROnPlateauOptions& o = options_;
  constexpr char kTitle[] = "ReduceLROnPlateau: ";
  if (!(o.factor >= 0 && o.factor < 1)) {
    return InvalidArgument(kTitle, "factor = ", o.factor, "; expected 0 <= factor < 1");
  }
  for (const auto& [name, value] : {std::pair{"patience", o.patience}, {"cooldown", o.cooldown}}) {
    if (value < 0) return InvalidArgument(kTitle, name, " = ", value, "; expected >= 0");
  }
  for (const auto& [name, value] :
       {std::pair{"threshold", o.threshold}, {"min_lr", o.min_lr}, {"eps", o.eps}}) {
    if (value >= 0 && value <= MaxFinite(DType::kF32)) continue;
    return InvalidArgument(kTitle, name, " = ", value,
                           "; expected a number >= 0 that is finite in f32");
  }
  return absl::OkStatus();
}

PlateauState ReduceLROnPlateau::Start() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {options_.mode == PlateauMode::kMin ? kInfinity : -kInfinity};
}

bool ReduceLROnPlateau::IsBetter(double metric, double best) const {
  const bool relative = options_.threshold_mode == PlateauThreshold::kRel;
  if (options_.mode == PlateauMode::kMin) {
    return metric < (relative ? best * (1 - options_.threshold) : best - options_.threshold);
  }
  return metric > (relative ? best * (1 + options_.threshold) : best + options_.threshold);
}

bool ReduceLROnPlateau::Step(double metric, PlateauState& state) const {
  if (IsBetter(metric, state.best)) {
    state.best = metric;
    state.num_bad_epochs = 0;
  } else {
    ++state.num_bad_epochs;
  }
  if (state.cooldown_counter > 0) {
    --state.cooldown_counter;
    state.num_bad_epochs = 0;
  }
  if (state.num_bad_epochs <= options_.patience) return false;
  state.cooldown_counter = options_.cooldown;
  state.num_bad_epochs = 0;
  return true;
}

double ReduceLROnPlateau::Reduced(double lr) const {
  const double reduced = std::max(lr * options_.factor, options_.min_lr);
  return lr - reduced > options_.eps ? reduced : lr;
}

}  // namespace halftone::optim
