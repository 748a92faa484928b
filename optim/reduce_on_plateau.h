// ReduceLROnPlateau: a learning rate that falls once a metric, say the loss of an evaluation, has
// stopped to get better. A metric is known between steps alone, so this runs on the host and changes
// the base rates, which schedules multiply. nn::Graph::add_plateau keeps its state with the graph's.
#pragma once

#include <cstdint>

#include "halftone/core/status.h"

namespace halftone::optim {

enum class PlateauMode : uint8_t { kMin, kMax };       // whether lower or higher is better
enum class PlateauThreshold : uint8_t { kRel, kAbs };  // of the best value, or as it is

// Names and defaults: PyTorch's.
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::kMin;
  double factor = 0.1;      // of the rate, 0..1 without 1
  int64_t patience = 10;    // values in a row without getting better that change nothing, >= 0
  double threshold = 1e-4;  // by how much a value must be better, >= 0
  PlateauThreshold threshold_mode = PlateauThreshold::kRel;
  int64_t cooldown = 0;  // values after a reduction that are not counted as bad, >= 0
  double min_lr = 0;     // where reducing ends, >= 0
  double eps = 1e-8;     // a reduction by no more than this is left out, >= 0
};

struct PlateauState {
  double best;  // infinite before the first value
  int64_t num_bad_epochs = 0;
  int64_t cooldown_counter = 0;
  friend bool operator==(const PlateauState&, const PlateauState&) = default;
};

// Source: torch.optim.lr_scheduler.ReduceLROnPlateau.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {}) : options_(options) {}

  const ReduceLROnPlateauOptions& options() const { return options_; }
  // Errors: InvalidArgument: "ReduceLROnPlateau: factor = 1; expected 0 <= factor < 1", likewise
  // the others.
  absl::Status Validate() const;

  PlateauState Start() const;
  // Takes the next value; NaN is a bad one. Whether the rates are to be reduced now.
  bool Step(double metric, PlateauState& state) const;
  // The rate that follows `lr`.
  double Reduced(double lr) const;

 private:
  bool IsBetter(double metric, double best) const;

  ReduceLROnPlateauOptions options_;
};

}  // namespace halftone::optim
