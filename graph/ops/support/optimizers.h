// The descriptions of optimizers.def as values: ranges, hyper-parameters, states, optimizers; and
// the check of hyper-parameters, which is the same for options, markers and update ops but for its
// words.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/op.h"
#include "halftone/graph/ops/support/update_hypers.h"

namespace halftone::ops {

// The values that a hyper-parameter may have, and what messages expect: of an option, of the
// attribute of an `optimizer` marker, of that of an update op (for numbers that f32 has).
struct Range {
  bool (*holds)(double);
  const char* of_option;
  const char* of_marker;
  const char* of_update;
};

inline bool IsFiniteInF32(double x) { return std::abs(x) <= MaxFinite(DType::kF32); }

inline constexpr Range kNotNegative{[](double x) { return x >= 0 && IsFiniteInF32(x); },
                                    "a number >= 0 that is finite in f32",
                                    "0 or more and finite in f32", "0 or more"};
inline constexpr Range kFiniteInF32{IsFiniteInF32, "a number that is finite in f32",
                                    "a number that is finite in f32",
                                    "a number that is finite in f32"};
inline constexpr Range kPositive{
    [](double x) { return x >= MinSubnormal(DType::kF32) && IsFiniteInF32(x); },
    "a number > 0 that f32 can hold", "above 0 and a number that f32 can hold", "above 0"};
// From 0 on, below 1.
constexpr Range BelowOne(const char* of_option) {
  return {[](double x) { return x >= 0 && x < 1; }, of_option, "0 or more and below 1",
          "0 or more and below 1"};
}
inline constexpr Range kAnyFlag{[](double) { return true; }, "", "", ""};

struct HyperInfo {
  const char* name;
  Range range;
  const char* doc;
  bool is_option;  // and an attribute of the marker
};

struct StateInfo {
  const char* name;  // of the variable
  const char* port;  // of the op
  double initial;
  const char* doc;
  const char* hyper;     // that decides whether it is there; "": it always is
  const char* expected;  // then, in words
};

struct UpdateInfo {
  const char* op;
  double flops;  // per element
  const char* doc;
  const char* source;
};

// What an update does with a gradient that holds rows alone.
struct RowWiseInfo {
  bool holds = false;         // updates those rows alone, by RowUpdateOp
  bool only = false;          // and takes no other gradient
  const char* expected = "";  // when it holds, in words; "": never
};

struct OptimizerInfo {
  const char* title;  // "AdamW", the class
  const char* rule;   // "adamw"
  double lr;
  const char* doc;
};

// A flag that is set where it may not be.
struct UnmetNeed {
  const char* flag;
  const char* names[2];  // of the hyper-parameters that it depends on
  double values[2];
  const char* of_option;  // what is expected, in the words for an option and for a node
  const char* of_node;
};

// clang-format off
// kUpdateInfo<NameUpdate>
template <typename Update>
inline constexpr UpdateInfo kUpdateInfo{};
#define HT_UPDATE(Name, op, flops, doc, source) \
  template <>                                   \
  inline constexpr UpdateInfo kUpdateInfo<Name##Update>{op, flops, doc, source};
#include "halftone/graph/ops/support/optimizers.def"

// HypersOf<NameUpdate>::ForEach(update, visit) calls visit(HyperInfo, value) for every
// hyper-parameter. Of a node, a clip_value that f32 makes 0 clips nothing; an option is held to
// more (optim/optimizer.cc).
inline constexpr HyperInfo kClipValueHyper{
    "clip_value", kNotNegative, "largest magnitude of an entry of a gradient; 0: no clipping",
    false};
template <typename Update>
struct HypersOf;
#define HT_UPDATE(Name, ...)                           \
  template <>                                          \
  struct HypersOf<Name##Update> {                      \
    template <typename Self, typename Visit>           \
    static void ForEach(Self& h, const Visit& visit) {
#define HT_HYPER(name, type, default_value, range, doc) \
      visit(HyperInfo{#name, range, doc, true}, h.name);
#define HT_VARIANT(name, type, default_value, range, doc) \
      visit(HyperInfo{#name, range, doc, false}, h.name);
#define HT_END_UPDATE(Name) visit(kClipValueHyper, h.clip_value); } };
#include "halftone/graph/ops/support/optimizers.def"

// In order, those included that are not always there.
#define HT_UPDATE(Name, ...)                                       \
  inline std::vector<StateInfo> AllStates(const Name##Update& h) { \
    static_cast<void>(h);                                          \
    return {
#define HT_STATE(name, port, initial, doc) \
    {#name, #port, initial, doc, "", ""},
#define HT_STATE_IF(hyper, condition, name, port, initial, doc, expected) \
    {#name, #port, initial, doc, #hyper, expected},
#define HT_END_UPDATE(Name) }; }
#include "halftone/graph/ops/support/optimizers.def"

#define HT_UPDATE(Name, ...)                                             \
  inline std::optional<UnmetNeed> FindUnmetNeed(const Name##Update& h) { \
    static_cast<void>(h);
#define HT_NEEDS(flag, condition, first, second, of_option, of_node)                       \
    if (h.flag && !(condition)) {                                                          \
      return UnmetNeed{#flag, {#first, #second}, {h.first, h.second}, of_option, of_node}; \
    }
#define HT_END_UPDATE(Name) return std::nullopt; }
#include "halftone/graph/ops/support/optimizers.def"

#define HT_UPDATE(Name, ...)                                \
  inline RowWiseInfo RowWiseOf(const Name##Update& h) {     \
    static_cast<void>(h);                                   \
    RowWiseInfo info;
#define HT_ROW_WISE(Name, condition, only, expected) info = {condition, only, expected};
#define HT_END_UPDATE(Name) return info; }
#include "halftone/graph/ops/support/optimizers.def"

// visit(NameUpdate()) for every update op.
template <typename Visit>
void ForEachUpdate(const Visit& visit) {
#define HT_UPDATE(Name, ...) visit(Name##Update());
#include "halftone/graph/ops/support/optimizers.def"
}

// visit(OptimizerInfo, update) for every optimizer; the update has its defaults and variants.
template <typename Visit>
void ForEachOptimizer(const Visit& visit) {
#define HT_OPTIMIZER(Class, rule, Name, lr, doc)       \
  {                                                    \
    const OptimizerInfo info{#Class, rule, lr, doc};   \
    Name##Update h;
#define HT_OPTION_DEFAULT(name, default_value) h.name = default_value;
#define HT_SETS(name, value)                   h.name = value;
#define HT_END_OPTIMIZER(Class)                visit(info, h); }
#include "halftone/graph/ops/support/optimizers.def"
}

// clang-format on

// The op that updates rows: "<op>_rows". Requires: kIsRowWise<Update>.
template <typename Update>
std::string RowUpdateOp() {
  static_assert(kIsRowWise<Update>);
  return Concat(kUpdateInfo<Update>.op, "_rows");
}

// The names of all rules, in order.
std::vector<std::string> OptimizerRules();

// The dtype of the 16-bit copy of the new parameter that an update writes as well, if any: its
// attribute `low`.
inline std::optional<DType> LowCopyOf(const ir::Node& update) {
  const DType low = update.attrs().GetDType("low");
  return IsLow(low) ? std::optional(low) : std::nullopt;
}

// The names of UpdateRounding, which the attribute `rounding` of an update has: "nearest",
// "stochastic", "kahan".
const char* Name(UpdateRounding rounding);
std::optional<UpdateRounding> ParseUpdateRounding(const std::string& name);
// That of an update. Requires: a name that is known.
UpdateRounding RoundingOf(const ir::Attributes& update);

// What kKahan keeps for each parameter, behind the states.
inline constexpr char kCompensation[] = "compensation";

// The states that are there, in order of the ports.
template <typename Update>
std::vector<StateInfo> StatesThere(const Update& update) {
  std::vector<StateInfo> there;
  const unsigned set = StateSet(update);
  const std::vector<StateInfo> all = AllStates(update);
  for (size_t i = 0; i < all.size(); ++i) {
    if ((set >> i & 1) != 0) there.push_back(all[i]);
  }
  return there;
}

// `update` with the hyper-parameters that `attrs` has.
template <typename Update>
Update WithAttributes(Update update, const ir::Attributes& attrs) {
  HypersOf<Update>::ForEach(update, [&attrs](const HyperInfo& info, auto& value) {
    if (attrs.Has(info.name)) value = attrs.Get<std::decay_t<decltype(value)>>(info.name);
  });
  return update;
}

enum class HyperOwner : unsigned char { kOption, kMarker, kUpdate };

// Errors: InvalidArgument: "SGD: momentum = -1; expected a number >= 0 that is finite in f32" of
// options, "sgd_update: momentum is -1; expected 0 or more" of nodes. `what`: the title or op.
absl::Status CheckHyper(HyperOwner owner, const std::string& what, const char* name, double value,
                        const Range& range);
absl::Status CheckNeed(HyperOwner owner, const std::string& what,
                       const std::optional<UnmetNeed>& unmet);

// All hyper-parameters of an update, and what they need of each other.
template <typename Update>
absl::Status CheckHypers(HyperOwner owner, const std::string& what, const Update& update) {
  absl::Status status;
  HypersOf<Update>::ForEach(update, [&](const HyperInfo& info, const auto& value) {
    if (owner != HyperOwner::kUpdate && !info.is_option) return;
    if (!status.ok()) return;
    status = CheckHyper(owner, what, info.name, static_cast<double>(value), info.range);
  });
  return status.ok() ? CheckNeed(owner, what, FindUnmetNeed(update)) : status;
}

}  // namespace halftone::ops
