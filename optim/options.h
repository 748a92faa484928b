// The options of the optimizers. Each option is declared once, for the optimizer and for a
// parameter group: an optimizer has a value with a default, a group has one or follows the
// optimizer.
//
// Every struct lists in Visit what a group may set; markers and bindings are made from that list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "halftone/optim/lr_schedule.h"

namespace halftone::optim {

// Whose non-finite gradients make this optimizer skip a step under a grad scaler.
enum class SkipPolicy : uint8_t {
  kOwn,  // its own (PyTorch's behaviour)
  kAny   // those of any optimizer of the graph
};
const char* Name(SkipPolicy policy);  // "own", "any"

enum class Scope : uint8_t { kOptimizer, kGroup };

// An option that a group may set for itself: T, or in a group std::optional<T>.
template <Scope scope, typename T>
using Option = std::conditional_t<scope == Scope::kGroup, std::optional<T>, T>;

// The type of an option that only the whole optimizer has: in a group nothing converts to it.
struct NotInGroups {};
template <Scope scope, typename T>
using OptimizerOption = std::conditional_t<scope == Scope::kGroup, NotInGroups, T>;

// The default of an optimizer's option; a group's is unset.
template <Scope scope, typename T>
constexpr Option<scope, T> Default(T value) {
  if constexpr (scope == Scope::kGroup) return std::nullopt;
  return value;
}

// What all rules share. Each option struct repeats these after its own fields.
struct StepOptions {
  LRSchedule lr_schedule;  // constant by default
  double clip_norm = 0;    // see SGDOptionsOf
  std::string scaler;
  SkipPolicy skip = SkipPolicy::kOwn;
  bool skip_nonfinite = false;
};

template <Scope scope>
struct SGDOptionsOf {
  static constexpr const char* kRule = "sgd";

  Option<scope, double> lr = Default<scope>(1e-3);           // base learning rate, >= 0
  Option<scope, double> momentum = Default<scope>(0.0);      // >= 0; 0 keeps no buffer
  Option<scope, double> dampening = Default<scope>(0.0);     // gradient left out of the buffer
  Option<scope, double> weight_decay = Default<scope>(0.0);  // L2: added to the gradient, >= 0
  Option<scope, bool> nesterov = Default<scope>(false);      // needs momentum > 0, dampening == 0
  Option<scope, LRSchedule> lr_schedule = {};                // constant by default
  // The largest L2 norm of the unscaled gradients of all groups together; 0 does not clip. Where
  // the norm is not finite and nothing skips the step, the gradients are applied as they are.
  OptimizerOption<scope, double> clip_norm = {};
  // Each entry of a gradient, unscaled and clipped by norm, is brought into
  // -clip_value..clip_value; NaN stays. 0 does not clip.
  Option<scope, double> clip_value = Default<scope>(0.0);
  // Name of the grad scaler; empty: the graph's, if it has one.
  OptimizerOption<scope, std::string> scaler = {};
  OptimizerOption<scope, SkipPolicy> skip = {};
  // Also without grad scaler a step whose gradients are not all finite is skipped: parameters,
  // state and step count keep every bit.
  OptimizerOption<scope, bool> skip_nonfinite = {};

  template <typename Self, typename Function>
  static void Visit(Self& self, Function visit) {
    visit("lr", self.lr);
    visit("momentum", self.momentum);
    visit("dampening", self.dampening);
    visit("weight_decay", self.weight_decay);
    visit("nesterov", self.nesterov);
    visit("lr_schedule", self.lr_schedule);
    visit("clip_value", self.clip_value);
  }
};
using SGDOptions = SGDOptionsOf<Scope::kOptimizer>;
using SGDGroupOptions = SGDOptionsOf<Scope::kGroup>;

// Adam, and AdamW where `decoupled`.
template <Scope scope, bool decoupled>
struct AdamOptionsOf {
  static constexpr const char* kRule = decoupled ? "adamw" : "adam";

  Option<scope, double> lr = Default<scope>(1e-3);
  Option<scope, std::array<double, 2>> betas =
      Default<scope>(std::array<double, 2>{0.9, 0.999});  // each in [0, 1)
  Option<scope, double> eps = Default<scope>(1e-8);       // >= 0
  // Adam: L2, added to the gradient. AdamW: w *= 1 - lr * weight_decay.
  Option<scope, double> weight_decay = Default<scope>(decoupled ? 1e-2 : 0.0);
  Option<scope, LRSchedule> lr_schedule = {};
  OptimizerOption<scope, double> clip_norm = {};  // the rest as for SGD
  Option<scope, double> clip_value = Default<scope>(0.0);
  OptimizerOption<scope, std::string> scaler = {};
  OptimizerOption<scope, SkipPolicy> skip = {};
  OptimizerOption<scope, bool> skip_nonfinite = {};

  template <typename Self, typename Function>
  static void Visit(Self& self, Function visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("lr_schedule", self.lr_schedule);
    visit("clip_value", self.clip_value);
  }
};
using AdamOptions = AdamOptionsOf<Scope::kOptimizer, false>;
using AdamGroupOptions = AdamOptionsOf<Scope::kGroup, false>;
using AdamWOptions = AdamOptionsOf<Scope::kOptimizer, true>;
using AdamWGroupOptions = AdamOptionsOf<Scope::kGroup, true>;

// Instantiates the defaults: g++ 12 has an internal error where overload resolution is the first to
// need them.
static_assert(sizeof(SGDOptions{}) + sizeof(SGDGroupOptions{}) + sizeof(AdamOptions{}) +
                  sizeof(AdamGroupOptions{}) + sizeof(AdamWOptions{}) +
                  sizeof(AdamWGroupOptions{}) >
              0);

}  // namespace halftone::optim
