#include "halftone/optim/ema.h"

#include <algorithm>
#include <cmath>

#include "halftone/core/dtype.h"
#include "halftone/graph/ops/support/optimizers.h"

namespace halftone::optim {
namespace {

// Calls visit(attribute, member) for each.
template <typename Self, typename Visit>
void ForEachMember(Self& ema, const Visit& visit) {
  visit("ema_decay", ema.decay);
  visit("ema_min_decay", ema.min_decay);
  visit("ema_update_after_step", ema.update_after_step);
  visit("ema_use_warmup", ema.use_warmup);
  visit("ema_warmup_gamma", ema.warmup_gamma);
  visit("ema_warmup_power", ema.warmup_power);
}

}  // namespace

absl::Status Ema::Validate() const {
  if (!(decay >= 0 && decay <= 1)) {
    return InvalidArgument("Ema: decay = ", decay, "; expected 0..1");
  }
  if (!(min_decay >= 0 && min_decay <= decay)) {
    return InvalidArgument("Ema: min_decay = ", min_decay, "; expected 0..decay, which is ", decay);
  }
  if (update_after_step < 0) {
    return InvalidArgument("Ema: update_after_step = ", update_after_step, "; expected >= 0");
  }
  if (!(warmup_gamma > 0 && ops::IsFiniteInF32(warmup_gamma))) {
    return InvalidArgument("Ema: warmup_gamma = ", warmup_gamma,
                           "; expected a number > 0 that is finite in f32");
  }
  if (!ops::kNotNegative.holds(warmup_power)) {
    return InvalidArgument("Ema: warmup_power = ", warmup_power, "; expected ",
                           ops::kNotNegative.of_option);
  }
  return absl::OkStatus();
}

double Ema::DecayAt(int64_t update) const {
  const int64_t s = update - 1 - update_after_step;
  if (s <= 0) return 0;
  if (!use_warmup) return decay;
  const double rising = 1 - std::pow(1 + static_cast<double>(s) / warmup_gamma, -warmup_power);
  return std::max(std::min(rising, decay), min_decay);
}

void Ema::AddTo(ir::Attributes& marker) const {
  marker.Set("ema", true);
  ForEachMember(*this, [&marker](const char* name, const auto& value) { marker.Set(name, value); });
}

Ema Ema::Of(const ir::Attributes& marker) {
  Ema ema;
  ForEachMember(ema, [&marker](const char* name, auto& value) {
    value = marker.Get<std::decay_t<decltype(value)>>(name);
  });
  return ema;
}

}  // namespace halftone::optim
