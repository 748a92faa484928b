// Hyper-parameters, states and ports of the update ops, from optimizers.def: what device code
// shares with the rest. NameUpdate has the hyper-parameters of an update, NameState numbers its
// states.
#pragma once

#include <cstdint>
#include <type_traits>

#include "halftone/core/doc.h"

namespace halftone::ops {

// Inputs of every update op. The states that are there follow; outputs are the parameter and those
// states, in the same order. Of an update of rows the states come behind the ids of the rows.
struct UpdatePort {
  enum : int { kParam, kGrad, kLr, kInvScale, kClip, kApply, kStep, kFirstState };
};
struct RowUpdatePort {
  enum : int { kIds = UpdatePort::kFirstState, kFirstState };
};

// How an update stores its results.
enum class UpdateRounding : uint8_t {
  kNearest,     // f64 and f32
  kStochastic,  // bf16: up or down by chance, so that the mean is what was computed
  kKahan  // bf16: the parameter to nearest, what that loses in a second array; states as above
};

// clang-format off
#define HT_UPDATE(Name, ...) struct Name##Update {
#define HT_HYPER(name, type, default_value, range, doc) HT_DOC(doc) type name = default_value;
#define HT_VARIANT(name, type, default_value, ...) type name = default_value;
#define HT_END_UPDATE(Name)                        double clip_value = 0; };
#include "halftone/graph/ops/support/optimizers.def"

#define HT_UPDATE(Name, ...)                     struct Name##State { enum : int {
#define HT_STATE(name, ...)                        name,
#define HT_STATE_IF(hyper, condition, name, ...)   name,
#define HT_END_UPDATE(Name)                        kCount }; };
#include "halftone/graph/ops/support/optimizers.def"

// Whether the step of an update is scaled by a ratio of norms of the whole tensor.
template <typename Update>
inline constexpr bool kHasTrustRatio = false;
#define HT_TRUST_RATIO(Name) template <> inline constexpr bool kHasTrustRatio<Name##Update> = true;
#include "halftone/graph/ops/support/optimizers.def"

// Whether there is an update of rows, too.
template <typename Update>
inline constexpr bool kIsRowWise = false;
#define HT_ROW_WISE(Name, ...) template <> inline constexpr bool kIsRowWise<Name##Update> = true;
#include "halftone/graph/ops/support/optimizers.def"

// A set of an update's states, a bit each.
template <unsigned kSet, int kState>
inline constexpr bool kHasState = (kSet >> kState & 1) != 0;

// StatesOf<NameUpdate>: how many states there are, and which of them always.
template <typename Update>
struct StatesOf;
#define HT_UPDATE(Name, ...)                       \
  template <>                                      \
  struct StatesOf<Name##Update> {                  \
    using State = Name##State;                     \
    static constexpr int kCount = State::kCount;   \
    static constexpr unsigned kAlways = 0
#define HT_STATE(name, ...)                          | 1u << State::name
#define HT_END_UPDATE(Name)                          ; };
#include "halftone/graph/ops/support/optimizers.def"

// The states that an update with these hyper-parameters has.
#define HT_UPDATE(Name, ...)                                     \
  constexpr unsigned StateSet(const Name##Update& h) {           \
    using State [[maybe_unused]] = Name##State;                  \
    static_cast<void>(h);                                        \
    unsigned set = StatesOf<Name##Update>::kAlways;
#define HT_STATE_IF(hyper, condition, name, ...) if (condition) set |= 1u << State::name;
#define HT_END_UPDATE(Name)                      return set; }
#include "halftone/graph/ops/support/optimizers.def"
// clang-format on

// Calls run(std::integral_constant<unsigned, set>()): one instance for each set that can be.
template <typename Update, unsigned kSet = 0, typename Run>
auto WithStates(unsigned set, const Run& run) {
  constexpr unsigned kAll = (1u << StatesOf<Update>::kCount) - 1;
  constexpr bool kPossible = (kSet & StatesOf<Update>::kAlways) == StatesOf<Update>::kAlways;
  if constexpr (kSet == kAll) {
    return run(std::integral_constant<unsigned, kSet>());
  } else if constexpr (!kPossible) {
    return WithStates<Update, kSet + 1>(set, run);
  } else {
    return set == kSet ? run(std::integral_constant<unsigned, kSet>())
                       : WithStates<Update, kSet + 1>(set, run);
  }
}

}  // namespace halftone::ops
