// Ema: an exponential moving average of every parameter of an optimizer, kept in the graph's state
// ("optimizer0.fc.weight.ema"). A step that is skipped leaves it alone. nn::EmaScope puts the
// averages in the parameters' place for an evaluation.
#pragma once

#include <cstdint>

#include "halftone/core/status.h"
#include "halftone/graph/ir/attribute.h"

namespace halftone::optim {

// average = decay * average + (1 - decay) * parameter, after each applied update. The first one is
// the parameter itself, so that the initial values do not count. Names and defaults: timm's
// ModelEmaV3; torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay) is the same
// without warm-up.
struct Ema {
  double decay = 0.9999;          // 0..1
  double min_decay = 0;           // of the warm-up, 0..decay
  int64_t update_after_step = 0;  // so many updates more, the average is the parameter; >= 0
  // Warm-up: the decay of update n is 1 - (1 + s / warmup_gamma)^-warmup_power, between min_decay
  // and decay, where s = n - 1 - update_after_step.
  bool use_warmup = false;
  double warmup_gamma = 1;        // > 0
  double warmup_power = 2.0 / 3;  // >= 0

  friend bool operator==(const Ema&, const Ema&) = default;

  // Errors: InvalidArgument: "Ema: decay = 1.5; expected 0..1", likewise the others.
  absl::Status Validate() const;
  // The decay of an update, counted from 1.
  double DecayAt(int64_t update) const;

  // As attributes of the `optimizer` marker, and back.
  void AddTo(ir::Attributes& marker) const;
  static Ema Of(const ir::Attributes& marker);
};

// The name of the average among what an optimizer keeps for a parameter.
inline constexpr char kEmaSlot[] = "ema";

}  // namespace halftone::optim
