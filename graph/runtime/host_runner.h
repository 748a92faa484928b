// HostRunner: calls kernels on host memory, one after the other.
#pragma once

#include <memory>
#include <vector>

#include "halftone/graph/runtime/arena.h"
#include "halftone/graph/runtime/runner.h"
#include "halftone/graph/runtime/variable_storage.h"

namespace halftone::runtime {

// A fault ends the run at its node: no kernel that can fault runs after a variable was written in
// place, and everything else is copied at the end. Outputs are written during the step. Kept casts
// and packed weights hold from step to step, with the version of the value they were made of.
class HostRunner : public Runner {
 public:
  // `variables` are those of the plan's graph, in order. The plan must outlive the runner. Errors:
  // ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(
      const StepPlan& plan, std::vector<std::shared_ptr<VariableStorage>> variables,
      std::shared_ptr<Arena> arena);

  absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count,
                     const Observers& observers) override;
  absl::Status Finish() override { return absl::OkStatus(); }
  bool last_step_failed() const override { return false; }
  std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const>) override { return nullptr; }
  bool writes_outputs_later() const override { return false; }

 private:
  HostRunner(const StepPlan& plan, std::vector<std::shared_ptr<VariableStorage>> variables,
             std::vector<HostCast*> kept, std::vector<std::shared_ptr<HostPacked>> packed,
             std::shared_ptr<Buffer> cast, std::shared_ptr<Arena> arena);
  absl::Status RunStep(const void* const* inputs, void* const* outputs, uint64_t* run_count,
                       const Observers& observers);
  // Where the arena lies now.
  void Bind();
  // Where the caller's memory lies in this run.
  void BindArguments(const void* const* inputs, void* const* outputs);
  absl::Status FetchVariables() const;
  // Casts that something else than an update of this step has made stale.
  absl::Status DeriveKept(const Observers& observers);
  // The same for packed weights, which are made of variables and casts of them.
  void DerivePacked();
  // One call: the fault that it raised, or an observer's error.
  absl::Status RunCall(size_t c, kernels::RunState& state, const Observers& observers);
  absl::Status RunWithOthers(kernels::RunState& state, const Observers& observers);
  absl::Status RunKernels(uint64_t run_count, const Observers& observers);
  void NoteWrites() const;
  void CopyAll(const std::vector<StepPlan::Copy>& copies) const;

  const StepPlan& plan_;
  const std::vector<std::shared_ptr<VariableStorage>> variables_;
  std::vector<HostCast*> kept_;                      // by kept cast; null: it is only packed
  std::vector<std::shared_ptr<HostPacked>> packed_;  // by packed weight
  const std::shared_ptr<Buffer> cast_;               // room for one that is only packed
  const std::shared_ptr<Arena> arena_;
  Places places_;
  ArgumentTables tables_;
  uint64_t bound_generation_ = 0;
  // The places in the tables that the caller gives anew for each run.
  std::vector<size_t> patched_inputs_, patched_outputs_;
};

}  // namespace halftone::runtime
