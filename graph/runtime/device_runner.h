// DeviceRunner: puts the kernels of a step on an accelerator's stream. The first run puts them
// there one by one, which warms up libraries; the second records them as one graph that later runs
// start as a whole.
//
// Invariants:
//  1. Every address in the step is fixed: inputs, outputs and the run's state lie in one block,
//     `io`. What the host gives a step (inputs, run count, learning rate) goes through a slot of
//     the StepRing, so the host may change it while earlier steps are under way.
//  2. A fault (DeviceRunState) does not stop the work behind it. It changes no variable all the
//     same: kernels that write one in place do nothing then, and the copies at the end are gated.
//  3. Kept casts hold from step to step, with the version of the value they were made of. The update
//     that the plan names writes them in the same pass; any other write makes them stale, and the
//     next run derives them again.
#pragma once

#include <memory>
#include <vector>

#include "halftone/graph/runtime/arena.h"
#include "halftone/graph/runtime/runner.h"
#include "halftone/graph/runtime/step_ring.h"
#include "halftone/graph/runtime/variable_storage.h"

namespace halftone::runtime {

class DeviceRunner : public Runner {
 public:
  // `variables` are those of the plan's graph, in order. Plan and backend must outlive the runner.
  // Errors: ResourceExhausted; the device's.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(
      const StepPlan& plan, kernels::DeviceBackend& backend,
      std::vector<std::shared_ptr<VariableStorage>> variables, std::shared_ptr<Arena> arena);
  ~DeviceRunner() override;

  absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count,
                     const Observers& observers) override;
  absl::Status Finish() override { return ring_->Finish(); }
  bool last_step_failed() const override { return ring_->last_failed(); }
  std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const> buffers) override {
    return ring_->Watch(buffers);
  }
  bool writes_outputs_later() const override { return true; }

 private:
  // How the block of inputs, state and outputs is laid out; a slot of the ring has the same layout,
  // and room for small variables behind it.
  struct Layout {
    std::vector<size_t> inputs, outputs;
    size_t state = 0;
    size_t end = 0;
    std::vector<size_t> variables;  // in a slot; kNowhere for large ones
    size_t slot_bytes = 0;
  };
  static constexpr size_t kNowhere = SIZE_MAX;

  DeviceRunner(const StepPlan& plan, kernels::DeviceBackend& backend,
               std::vector<std::shared_ptr<VariableStorage>> variables,
               std::shared_ptr<Arena> arena)
      : plan_(plan),
        backend_(backend),
        variables_(std::move(variables)),
        arena_(std::move(arena)) {}
  absl::Status Prepare();
  absl::Status PlaceVariables();
  void LayOut();
  absl::Status PlaceInputsAndOutputs();
  absl::Status PlaceConstants();
  // Where the arena lies now.
  void Bind();
  std::vector<kernels::DeviceCopySegment> SegmentsOf(
      const std::vector<StepPlan::Copy>& copies) const;
  // Puts the step on the stream, between the copies from and to `slot`.
  absl::Status PutStep(char* slot, const void* const* inputs, uint64_t run_count,
                       const Observers& observers);
  // After PutStep or the ring's Commit failed.
  void Abandon();
  // Before a run that may end half-way: what the step writes, as the host can bring it again.
  absl::Status FetchWritten();
  absl::Status BringVariables(char* slot);
  absl::Status DeriveKept(const Observers& observers);
  absl::Status RunStep(const Observers& observers);
  absl::Status Record();
  // Puts all work of the step on `stream`.
  absl::Status Enqueue(void* stream, bool one_by_one, const Observers& observers);
  absl::Status RunCall(size_t call, bool one_by_one, kernels::RunState* state);
  absl::Status CheckStep(const char* slot) const;

  const StepPlan& plan_;
  kernels::DeviceBackend& backend_;
  const std::vector<std::shared_ptr<VariableStorage>> variables_;
  const std::shared_ptr<Arena> arena_;
  Layout layout_;
  std::unique_ptr<kernels::DeviceMemory> io_, constant_memory_;
  std::vector<DeviceCopy*> masters_;  // by variable
  std::vector<DeviceCopy*> kept_;     // by kept cast

  Places places_;
  ArgumentTables tables_;
  std::vector<kernels::DeviceCopySegment> output_copies_, staging_copies_, commit_copies_;
  uint64_t bound_generation_ = 0;

  std::shared_ptr<StepRing> ring_;
  std::unique_ptr<kernels::DeviceGraph> step_graph_;
  bool may_record_ = true;  // HALFTONE_CUDA_GRAPH when the step was compiled
  bool warm_ = false;
};

}  // namespace halftone::runtime
