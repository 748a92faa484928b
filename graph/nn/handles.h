// Handles on what a graph owns: its optimizers and grad scalers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/status.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/nn/gradient_report.h"
#include "halftone/optim/grad_scaler.h"

namespace halftone::nn {

class Graph;

// One parameter group of an optimizer, from OptimizerHandle::group. Valid as long as the graph.
class GroupHandle {
 public:
  GroupHandle() = default;

  // Of its optimizer.
  const std::string& name() const { return optimizer_; }
  // Base learning rate: what the group's schedule multiplies. Setting it compiles nothing.
  double lr() const;
  // Errors: InvalidArgument if negative or not finite in f32.
  absl::Status set_lr(double lr);
  // Names of its parameters in the graph.
  std::vector<std::string> parameters() const;

 private:
  friend class OptimizerHandle;
  GroupHandle(Graph* graph, std::string optimizer, size_t index)
      : graph_(graph), optimizer_(std::move(optimizer)), index_(index) {}
  Graph* graph_ = nullptr;
  std::string optimizer_;
  size_t index_ = 0;
};

// One optimizer of a graph, from add_optimizer. Valid as long as the graph.
class OptimizerHandle {
 public:
  OptimizerHandle() = default;
  const std::string& name() const { return name_; }
  // So that a handle can be given where an optimizer is named: {.optimizers = {o}}.
  operator std::string() const { return name_; }  // NOLINT: converts by design

  // Parameter groups in the order in which the optimizer was given them; one if it was given none.
  size_t num_groups() const;
  // For `index` >= num_groups() a handle whose lr() is NaN and whose set_lr() is OutOfRange.
  GroupHandle group(size_t index) const { return GroupHandle(graph_, name_, index); }
  // Base learning rate of the first group.
  double lr() const;
  // Sets that of all groups. Compiles nothing. Errors: InvalidArgument if negative or not finite in
  // f32; nothing has changed then.
  absl::Status set_lr(double lr);
  // Steps that were not skipped.
  int64_t applied_steps() const;
  // Global L2 norm of the unscaled, unclipped gradients of the last training step; infinite if they
  // were not finite. NaN before the first step, and where nothing needs it (see
  // GraphConfig::track_grad_norm).
  double grad_norm() const;
  // Whether the last training step left this optimizer's parameters alone.
  bool last_step_skipped() const;

 private:
  friend class Graph;
  friend class PlateauHandle;
  OptimizerHandle(Graph* graph, std::string name) : graph_(graph), name_(std::move(name)) {}
  Graph* graph_ = nullptr;
  std::string name_;
};

// The ReduceLROnPlateau of an optimizer, from add_plateau. Valid as long as the graph.
class PlateauHandle {
 public:
  PlateauHandle() = default;
  // Of its optimizer.
  const std::string& name() const { return optimizer_; }

  // Takes the metric of an evaluation. Where it did not get better for long enough, the base rates
  // of all groups are reduced, which compiles nothing. Gives whether that was so; rates that are at
  // min_lr stay. Errors: FailedPrecondition inside build().
  absl::StatusOr<bool> step(double metric);
  // The state, saved with the graph's. `best` is infinite before the first value.
  double best() const;
  int64_t num_bad_epochs() const;
  int64_t cooldown_counter() const;

 private:
  friend class Graph;
  PlateauHandle(Graph* graph, std::string optimizer)
      : graph_(graph), optimizer_(std::move(optimizer)) {}
  double State(const char* state, double fallback) const;
  Graph* graph_ = nullptr;
  std::string optimizer_;
};

// One grad scaler of a graph, from set_grad_scaler, add_scaler or grad_scaler. Valid as long as the
// graph. A handle from grad_scaler() is on the graph's own scaler, whenever that is made.
class ScalerHandle {
 public:
  ScalerHandle() = default;
  // Empty while the graph has no scaler of its own.
  const std::string& name() const;
  // So that a handle can be given where a scaler is named: {.scaler = s}.
  operator std::string() const { return name(); }  // NOLINT: converts by design

  // 1 while there is no scaler.
  double scale() const;
  // Keeps growth tracker and counters. Of a graph that lowers to f16 and has no scaler yet, it
  // makes the automatic one. Errors: InvalidArgument unless finite and > 0 in f32, and its inverse
  // too; FailedPrecondition where there is no scaler.
  absl::Status set_scale(double scale);
  // Of the rule, see amp::GradScalerOptions; those of a default scaler while there is none.
  double growth_factor() const { return Options().growth_factor; }
  double backoff_factor() const { return Options().backoff_factor; }
  int64_t growth_interval() const { return Options().growth_interval; }
  // Between steps. Scale, tracker and counters stay; where the value is another one, later calls
  // compile anew. Errors: those of amp::GradScaler::Validate and of set_scale.
  absl::Status set_growth_factor(double factor);
  absl::Status set_backoff_factor(double factor);
  absl::Status set_growth_interval(int64_t interval);
  int64_t growth_tracker() const;
  int64_t total_steps() const;
  int64_t skipped_count() const;
  int64_t consecutive_skips() const;
  // The last changes of the scale, at most amp::ScaleHistory::kCapacity, the oldest first; not part
  // of the state. On an accelerator the scale is looked at here, and after each step where
  // max_consecutive_skips has calls wait: changes between two looks are one.
  std::vector<amp::ScaleChange> scale_history() const;
  // What f16 loses of the gradients of a training step on `in` at the present scale, and the scale
  // that would suit them. Runs the step beside the training, in f32 for the gradients and as it is
  // for the scale; nothing of it is kept, as of Graph::first_nonfinite_node. It compiles at each
  // call: for every hundredth step, say, not for each.
  // Errors: those of a call; FailedPrecondition in evaluation mode, and where there is no scaler, or
  // one that is disabled or scales no gradient.
  absl::StatusOr<GradientReport> measure_gradients(absl::Span<const Tensor> in) const;

  // Options and state with PyTorch's keys, see amp::GradScaler.
  absl::StatusOr<amp::StateDict> state_dict() const;
  // Restores both, also before the first call, where it makes the automatic scaler as set_scale
  // does. Later calls compile anew. Errors: InvalidArgument for a missing or unknown key or a value
  // out of range; nothing has changed then.
  absl::Status load_state_dict(const amp::StateDict& state);

 private:
  friend class Graph;
  int64_t Counter(const char* what) const;
  amp::GradScalerOptions Options() const;
  template <typename T>
  absl::Status SetOption(const char* what, T amp::GradScalerOptions::*option, T value);
  // Makes the automatic scaler where it is due. Errors: FailedPrecondition where there is none.
  absl::Status Find(const char* what) const;
  // The same, and an error inside build().
  absl::Status CheckMayChange(const char* what) const;
  ScalerHandle(Graph* graph, std::string name) : graph_(graph), name_(std::move(name)) {}
  Graph* graph_ = nullptr;
  std::string name_;  // empty: the graph's own
};

// For Value::backward.
struct BackwardOptions {
  // Name or handle of a grad scaler; empty: the graph's own, if it has one.
  std::string scaler = {};
  // Names or handles of the optimizers whose parameters get this loss's gradients; none: all.
  std::vector<std::string> optimizers = {};
};

}  // namespace halftone::nn
