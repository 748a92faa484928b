// amp::GradScaler: keeps 16-bit gradients in range by scaling the seed of the backward pass. This
// is its description and the form of its state; the arithmetic is nodes of the graph
// (loss_scale_update), the state is six graph variables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::amp {

// Rule, once per step over all gradients that a scaler scaled. Not finite: after `hysteresis` bad
// steps in a row scale = max(scale * backoff_factor, min_scale), growth tracker = 0, the step is
// skipped. Finite: tracker + 1; at growth_interval: scale = scale * growth_factor if that is finite
// and at most max_scale, tracker = 0. The two limits stop a change, they make none: a scale that
// was set or loaded beyond one of them stays where it is until the other side calls it back.
struct GradScalerOptions {
  double init_scale = 65536.0;     // > 0 and finite in f32
  double growth_factor = 2.0;      // > 1
  double backoff_factor = 0.5;     // in (0, 1)
  int64_t growth_interval = 2000;  // finite steps between growths, > 0
  bool enabled = true;             // false: the step is that of a graph without scaler, bit for bit
  bool dynamic = true;             // false: the scale never changes; check and skip stay
  double min_scale = 1.0;          // > 0; where backing off ends, may be below 1
  double max_scale = std::numeric_limits<float>::max();
  int64_t hysteresis = 1;             // bad steps before a backoff, > 0
  int64_t max_consecutive_skips = 0;  // more skips in a row are an error of the call; 0: no limit
};

// The six variables of a scaler named s: "s.scale", ... A skipped step changes these and nothing
// else.
struct GradScalerState {
  float scale = 65536.0f;
  int32_t growth_tracker = 0;   // finite steps since the last change of scale
  int32_t hysteresis_left = 1;  // bad steps left before a backoff
  int64_t total_steps = 0;
  int64_t skipped_steps = 0;
  int64_t consecutive_skips = 0;
  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

// One change of a scale.
struct ScaleChange {
  enum class Cause : uint8_t { kOverflow, kGrowth, kSet };
  int64_t step = 0;  // GradScalerState::total_steps once the change was made
  double before = 0, after = 0;
  Cause cause = Cause::kSet;  // kSet: set_scale, or a state that was loaded
  friend bool operator==(const ScaleChange&, const ScaleChange&) = default;
};
const char* Name(ScaleChange::Cause cause);  // "overflow", "growth", "set"

// The last changes of a scale. Adding allocates nothing.
class ScaleHistory {
 public:
  static constexpr size_t kCapacity = 64;
  void Add(const ScaleChange& change) { changes_[count_++ % kCapacity] = change; }
  // At most kCapacity, the oldest first.
  std::vector<ScaleChange> changes() const;

 private:
  std::array<ScaleChange, kCapacity> changes_;
  size_t count_ = 0;
};

// Whether `scale` can scale a loss: in f32 above 0 and finite, and so is its inverse.
bool IsLossScale(double scale);
inline constexpr char kLossScaleRange[] = "a finite f32 > 0 whose inverse is finite";

// Numbers by key; whole numbers are exact up to 2^53.
using StateDict = std::map<std::string, double>;

class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});

  const GradScalerOptions& options() const { return options_; }
  const GradScalerState& state() const { return state_; }
  void set_state(const GradScalerState& state) { state_ = state; }

  bool is_enabled() const { return options_.enabled; }
  // "dynamic", "static", "disabled": the marker's `mode`.
  const char* mode() const;

  // Errors: InvalidArgument naming option, value and range: "GradScaler: growth_factor = 1;
  // expected > 1".
  absl::Status Validate() const;

  // PyTorch's five keys (scale, growth_factor, backoff_factor, growth_interval, _growth_tracker)
  // and the rest under "halftone.". Empty when disabled.
  StateDict state_dict() const;
  // Restores options and state exactly. PyTorch's own dictionary is accepted: without our keys,
  // hysteresis is full and the counters are 0. A disabled scaler ignores the dictionary. Nothing
  // changes on an error. Errors: InvalidArgument for a missing or unknown key, a value out of
  // range.
  absl::Status load_state_dict(const StateDict& dict);

  // The attributes of the `scaler` marker. An automatic scaler, one the user did not ask for, is
  // dropped where nothing is f16. The graph's variables start fresh; StateTensors has what state()
  // is.
  ir::Attributes ToMarker(const std::string& name, bool automatic = false) const;

  // The scaler's variables in a graph, with the tensors that hold state(); the way to load before
  // a graph is built.
  std::map<std::string, Tensor> StateTensors(const std::string& name) const;
  // The reverse. Error: NotFound naming the missing variable, InvalidArgument for another type.
  absl::Status SetStateTensors(const std::string& name,
                               const std::map<std::string, Tensor>& values);

 private:
  GradScalerOptions options_;
  GradScalerState state_;
};

// A scaler whose scale never changes; gradients that are not finite still skip the step. OneFlow's
// name for GradScaler({.init_scale = scale, .dynamic = false}).
class StaticGradScaler : public GradScaler {
 public:
  explicit StaticGradScaler(double scale) : GradScaler({.init_scale = scale, .dynamic = false}) {}
};

// Declarations of the six variables, in the order of loss_scale_update's inputs.
std::vector<ir::Variable> ScalerVariables(const std::string& name, double init_scale,
                                          int64_t hysteresis);

// What a call returns once more than `limit` steps in a row were skipped. OK while
// `consecutive_skips` is at most `limit`, or `limit` is 0: no limit. Error: FailedPrecondition
// "scaler0: 5 steps in a row were skipped; limit 4; first non-finite gradient: fc1.weight".
absl::Status CheckConsecutiveSkips(const std::string& name, int64_t consecutive_skips,
                                   int64_t limit, const std::string& first_bad_parameter);

}  // namespace halftone::amp
