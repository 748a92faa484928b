// Which update op a rule uses and which state each parameter carries, and the names of the
// variables that hold it.
#pragma once

#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/attribute.h"
#include "halftone/graph/ir/types.h"

namespace halftone::optim {

// State that a parameter carries.
struct StateSlot {
  std::string name;    // "momentum_buffer"
  double initial = 0;  // value of every element before the first step
};

struct UpdateRule {
  std::string op;                // "sgd_update"
  std::vector<StateSlot> slots;  // in input order, with the compensation that `rounding` may need
  ir::Attributes attrs;          // of the update op
  std::string rows_op;           // "sgd_update_rows"; empty: it changes rows without gradient too
  bool only_rows = false;        // takes no dense gradient
};

// The rule of an `optimizer` marker. Errors: InvalidArgument for an unknown rule, listing the known
// ones.
absl::StatusOr<UpdateRule> RuleOfMarker(const ir::Attributes& marker);

// The rules that have a rows_op, and when, in words: "sgd without momentum, ... or ...".
std::string RowWiseRules();

// Names of the variables that hold an optimizer's state. The first group's learning rate is
// "optimizer0.lr", as that of an optimizer without groups; others are "optimizer0.group1.lr", ...
std::string LearningRateVariable(const std::string& optimizer, size_t group = 0);
std::string AppliedStepsVariable(const std::string& optimizer);    // i64[]
std::string FirstNonFiniteVariable(const std::string& optimizer);  // i32[]
std::string EmaStepsVariable(const std::string& optimizer);        // i64[], updates averaged
// State of its ReduceLROnPlateau: "best" f64[], "num_bad_epochs" and "cooldown_counter" i64[].
std::string PlateauVariable(const std::string& optimizer, const std::string& state);
std::string SlotVariable(const std::string& optimizer, const std::string& parameter,
                         const std::string& slot);  // "optimizer0.fc1.weight.exp_avg"

// The key of the random bits that round a parameter and its states, from the seed of the graph.
int64_t RoundingSeed(int64_t seed, const std::string& optimizer, const std::string& parameter);

// What is kept while a window of micro-batches is under way: how many there are, i64[]; the slot of
// the sum of a parameter's gradients, in its type; whether all gradients of a scaler were finite,
// bool[], where an optimizer has those of several.
inline constexpr char kMicroBatchesVariable[] = "accumulation.micro_batches";
inline constexpr char kGradSumSlot[] = "grad_sum";
// In a state with the sums of several ranks: true, bool[], where their gradients are added and no mean is taken.
inline constexpr char kRanksAreAddedVariable[] = "accumulation.ranks_are_added";
// f32 for a parameter of fewer digits, which would lose what small gradients add up to.
ir::ValueType GradSumType(const ir::ValueType& parameter);
std::string WindowFiniteVariable(const std::string& scaler);  // "scaler0.window_finite"

}  // namespace halftone::optim
