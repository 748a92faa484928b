// The options of the optimizers: SGDOptions, AdamOptions, ... made from the descriptions in
// graph/ops/support/optimizers.def. An optimizer has a value with a default; in the options of a
// parameter group (SGDGroupOptions, ...) each has one or follows the optimizer.
//
// Order of the members, which designated initialisers follow: lr, those of the description, then
//
//   lr_schedule     constant by default
//   clip_norm       The largest L2 norm of the unscaled gradients of all groups together; 0 does
//                   not clip. Where the norm is not finite and nothing skips the step, the
//                   gradients are applied as they are.
//   clip_value      Each entry of a gradient, unscaled and clipped by norm, is brought into
//                   -clip_value..clip_value; NaN stays. 0 does not clip.
//   scaler          Name of the grad scaler; empty: the graph's, if it has one.
//   skip            Whose non-finite gradients make it skip a step: SkipPolicy.
//   skip_nonfinite  Also without grad scaler a step whose gradients are not all finite is skipped:
//                   parameters, state and step count keep every bit.
//   ema             Keeps a moving average of every parameter: optim::Ema.
//   weights         How parameters and their states are kept: Weights.
//
// of which clip_norm, scaler, skip, skip_nonfinite, ema and weights are the whole optimizer's, not a
// group's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

#include "halftone/core/doc.h"
#include "halftone/core/status.h"
#include "halftone/graph/ops/support/update_hypers.h"
#include "halftone/optim/ema.h"
#include "halftone/optim/lr_schedule.h"

namespace halftone::optim {

// Whose non-finite gradients make this optimizer skip a step under a grad scaler.
enum class SkipPolicy : uint8_t {
  kOwn,  // its own (PyTorch's behaviour)
  kAny   // those of any optimizer of the graph
};
const char* Name(SkipPolicy policy);  // "own", "any"

// How an optimizer keeps its parameters and their states.
enum class Weights : uint8_t {
  kDeclared,  // in the type that the modules declare, f32 or f64
  // In bf16 with no f32 copy beside it: half of the memory. Updates compute in f32 and round by
  // chance, up as often as makes the mean right; the random bits follow from the seed of the graph,
  // names and applied steps.
  kBF16Stochastic,
  // In bf16, what rounding takes from a parameter in a second bf16 array ("compensation"), so that
  // small steps add up; states as above.
  kBF16Kahan
};
const char* Name(Weights weights);  // "declared", "bf16_stochastic", "bf16_kahan"
// Errors: InvalidArgument listing the names.
absl::StatusOr<Weights> ParseWeights(const std::string& name);

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

// What all rules share, as it arrives in the optimizer.
struct StepOptions {
  LRSchedule lr_schedule;
  double clip_norm = 0;
  std::string scaler;
  SkipPolicy skip = SkipPolicy::kOwn;
  bool skip_nonfinite = false;
  std::optional<Ema> ema;
  Weights weights = Weights::kDeclared;
};

// An option by name: the member, and the attribute of the marker that has its value (two for a
// pair).
template <typename Options, typename T>
struct Field {
  const char* name;
  const char* attrs[2];
  T Options::*member;
};

// clang-format off
#define HT_OPTIMIZER(Class, rule, Name, default_lr, doc)  \
  HT_DOC(doc)                                             \
  template <Scope scope>                                  \
  struct Class##OptionsOf {                               \
    static constexpr const char* kRule = rule;            \
    static constexpr const char* kTitle = #Class;         \
    static constexpr const char* kDoc = doc;              \
    using Update = ops::Name##Update;                     \
    using GroupOptions = Class##OptionsOf<Scope::kGroup>; \
    Option<scope, double> lr = Default<scope, double>(default_lr);
#define HT_OPTION(name) \
    Option<scope, decltype(Update::name)> name = Default<scope>(Update().name);
#define HT_OPTION_DEFAULT(name, value) \
    Option<scope, decltype(Update::name)> name = Default<scope, decltype(Update::name)>(value);
#define HT_PAIR(name, first, second)            \
    Option<scope, std::array<double, 2>> name = \
        Default<scope>(std::array<double, 2>{Update().first, Update().second});
#define HT_END_OPTIMIZER(Class)                                 \
    Option<scope, LRSchedule> lr_schedule = {};                 \
    OptimizerOption<scope, double> clip_norm = {};              \
    Option<scope, double> clip_value = Default<scope>(0.0);     \
    OptimizerOption<scope, std::string> scaler = {};            \
    OptimizerOption<scope, SkipPolicy> skip = {};               \
    OptimizerOption<scope, bool> skip_nonfinite = {};           \
    OptimizerOption<scope, std::optional<Ema>> ema = {};        \
    OptimizerOption<scope, Weights> weights = {};               \
  };                                                            \
  using Class##Options = Class##OptionsOf<Scope::kOptimizer>;   \
  using Class##GroupOptions = Class##OptionsOf<Scope::kGroup>;
#include "halftone/graph/ops/support/optimizers.def"

// OwnFields(options): the fields of an optimizer's own options, in order, as a tuple.
#define HT_OPTIMIZER(Class, ...)                             \
  template <Scope scope>                                     \
  constexpr auto OwnFields(const Class##OptionsOf<scope>&) { \
    using Options = Class##OptionsOf<scope>;                 \
    return std::make_tuple(                                  \
        Field<Options, Option<scope, double>>{"lr", {"lr"}, &Options::lr}
#define HT_OPTION(name) \
        , Field<Options, decltype(Options::name)>{#name, {#name}, &Options::name}
#define HT_PAIR(name, first, second) \
        , Field<Options, decltype(Options::name)>{#name, {#first, #second}, &Options::name}
#define HT_END_OPTIMIZER(Class) ); }
#include "halftone/graph/ops/support/optimizers.def"
// clang-format on

// Calls visit(field) for all that a group may set.
template <typename Options, typename Visit>
void ForEachField(const Options& options, const Visit& visit) {
  std::apply([&visit](const auto&... field) { (visit(field), ...); }, OwnFields(options));
  visit(Field<Options, decltype(Options::lr_schedule)>{
      "lr_schedule", {"schedule"}, &Options::lr_schedule});
  visit(Field<Options, decltype(Options::clip_value)>{
      "clip_value", {"clip_value"}, &Options::clip_value});
}

// Calls visit(options) with the default options of every optimizer.
template <typename Visit>
void ForEachOptions(const Visit& visit) {
#define HT_OPTIMIZER(Class, ...) visit(Class##Options());
#include "halftone/graph/ops/support/optimizers.def"
}

// Instantiates the defaults: g++ 12 has an internal error where overload resolution is the first to
// need them.
#define HT_OPTIMIZER(Class, ...) \
  static_assert(sizeof(Class##Options{}) + sizeof(Class##GroupOptions{}) > 0);
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::optim
