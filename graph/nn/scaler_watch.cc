#include "halftone/graph/nn/scaler_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace halftone::nn {
namespace {

bool HasScale(const ScalerEntry& entry) {
  return entry.scale != nullptr && entry.scale->materialised() && entry.total_steps->materialised();
}

void NoteScale(ScalerEntry& entry, bool is_set) {
  using Cause = amp::ScaleChange::Cause;
  const float scale = *entry.scale->value().data<float>();
  const float before = std::exchange(entry.rule->seen_scale, scale);
  if (std::isnan(before) || before == scale) return;
  const Cause cause = is_set ? Cause::kSet : scale < before ? Cause::kOverflow : Cause::kGrowth;
  entry.rule->history.Add({*entry.total_steps->value().data<int64_t>(), before, scale, cause});
}

}  // namespace

void NoteScalesBefore(Declaration& declared) {
  for (ScalerEntry& entry : declared.scalers()) {
    const bool known = HasScale(entry) && entry.scale->host_is_newest();
    entry.step_scale =
        known ? *entry.scale->value().data<float>() : std::numeric_limits<float>::quiet_NaN();
    if (std::isnan(entry.rule->seen_scale)) entry.rule->seen_scale = entry.step_scale;
  }
}

void NoteScales(Declaration& declared, bool are_set) {
  for (ScalerEntry& entry : declared.scalers()) {
    if (HasScale(entry)) NoteScale(entry, are_set);
  }
}

void NoteStuckScalers(Declaration& declared, const GraphState& state, GraphNotes& notes) {
  const std::deque<OptimizerEntry>& optimizers = declared.optimizers();
  constexpr int64_t kStuckSkips = 5;
  const auto applied = [](const OptimizerEntry& o) { return o.last.applied; };
  if (std::all_of(optimizers.begin(), optimizers.end(), applied)) return;
  for (ScalerEntry& entry : declared.scalers()) {
    if (entry.consecutive_skips == nullptr || entry.stuck_is_noted) continue;
    const amp::GradScalerOptions& options = entry.scaler().options();
    const int64_t skips = *entry.consecutive_skips->value().data<int64_t>();
    const float scale = *entry.scale->value().data<float>();
    const bool is_stuck = !options.dynamic || scale <= static_cast<float>(options.min_scale);
    if (!is_stuck || skips == 0) {
      entry.stuck_since = -1;
    } else if (entry.stuck_since < 0 || skips < entry.stuck_since) {
      entry.stuck_since = skips;
    }
    if (entry.stuck_since < 0 || skips < entry.stuck_since + kStuckSkips) continue;
    entry.stuck_is_noted = true;
    notes.Add(NoteKind::kStuckScaler,
              Concat(entry.name, ": ", skips, " steps in a row were skipped, the last ",
                     skips - entry.stuck_since, " at scale ", scale, ", which does not fall: ",
                     options.dynamic ? Concat("min_scale = ", options.min_scale)
                                     : std::string("dynamic = false"),
                     "; gradients that are finite at a lower scale need a lower ",
                     options.dynamic ? "min_scale" : "init_scale",
                     "; first non-finite gradient: ", state.FirstNonFinite()));
  }
}

absl::Status CheckSkips(Declaration& declared, const GraphState& state) {
  for (ScalerEntry& entry : declared.scalers()) {
    const int64_t limit = entry.scaler().options().max_consecutive_skips;
    if (limit == 0 || entry.consecutive_skips == nullptr) continue;
    const int64_t skips = *entry.consecutive_skips->value().data<int64_t>();
    // The step is over, so that looking costs little: the next one knows the scale it starts from.
    NoteScale(entry, /*is_set=*/false);
    if (skips > limit) {
      return amp::CheckConsecutiveSkips(entry.name, skips, limit, state.FirstNonFinite());
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::nn
