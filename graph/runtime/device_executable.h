// DeviceExecutable: puts the kernels of a step on an accelerator's stream. The first run puts them
// there one by one, which warms up libraries; the second records them as one graph that later runs
// start as a whole.
//
// Invariants:
//  1. Every address in the step is fixed: inputs, outputs and the run's state lie in one block,
//     `io`. What the host gives a step (inputs, run count, learning rate) goes through a slot of
//     the StepRing, so the host may change it while earlier steps are under way.
//  2. A fault (DeviceRunState) does not stop the work behind it. It changes no variable all the
//     same: kernels that write one in place do nothing then, and the copies at the end are gated.
//  3. Casts that the graph says are kept hold from step to step, with the version of the value they
//     were made of. The update that the graph names writes them in the same pass; any other write
//     makes them stale, and the next run derives them again.
#pragma once

#include <memory>
#include <vector>

#include "halftone/graph/runtime/executable.h"
#include "halftone/graph/runtime/step_ring.h"

namespace halftone::runtime {

class DeviceExecutable : public Executable {
 public:
  // As Executable::Create. `backend` must outlive it.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::unique_ptr<ir::Graph> graph,
                                                            kernels::DeviceBackend& backend,
                                                            uint64_t seed, VariableStore& store,
                                                            std::shared_ptr<Arena> arena);
  ~DeviceExecutable() override;

  absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count) override;
  absl::Status Finish() override { return ring_->Finish(); }
  bool last_step_failed() const override { return ring_->last_failed(); }
  std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const> buffers) override {
    return ring_->Watch(buffers);
  }
  bool writes_outputs_later() const override { return true; }

 private:
  // A kept cast of a variable.
  struct Kept {
    size_t variable;
    DType dtype;
    std::shared_ptr<kernels::Kernel> kernel;
    DeviceCopy* copy;
    bool written_by_update = false;
  };
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

  explicit DeviceExecutable(kernels::DeviceBackend& backend) : backend_(backend) {}
  absl::Status PlaceVariables();
  absl::Status PlaceKept();
  // Which kept cast each update writes besides its parameter.
  absl::Status FindCopies();
  // Error: Internal if graph and memory plan do not agree on what `update` writes.
  absl::StatusOr<int> FindKept(const ir::Node& update, const passes::Slot& param, DType low) const;
  void LayOut();
  absl::Status PlaceConstants();
  void Bind();
  void* Address(const passes::Slot& slot) const;
  // Puts the step on the stream, between the copies from and to `slot`.
  absl::Status PutStep(char* slot, const void* const* inputs, uint64_t run_count);
  // After PutStep or the ring's Commit failed.
  void Abandon();
  // Before a run that may end half-way: what the step writes, as the host can bring it again.
  absl::Status FetchWritten();
  absl::Status BringVariables(char* slot);
  absl::Status DeriveKept();
  absl::Status RunStep();
  absl::Status Record();
  // Puts all work of the step on `stream`.
  absl::Status Enqueue(void* stream, bool one_by_one);
  absl::Status CheckStep(const char* slot) const;

  kernels::DeviceBackend& backend_;
  Layout layout_;
  std::unique_ptr<kernels::DeviceMemory> io_, constant_memory_;
  std::vector<size_t> constant_offsets_;
  std::vector<DeviceCopy*> masters_;  // by variable
  std::vector<size_t> written_indices_;
  std::vector<Kept> kept_;
  std::vector<std::vector<int>> call_copies_;  // by call and member: into kept_, or -1

  uint64_t bound_generation_ = 0;
  std::vector<const void*> input_table_;
  std::vector<void*> output_table_;
  std::vector<std::vector<void*>> copy_tables_;  // by call
  std::vector<void*> workspaces_;                // by call
  std::vector<kernels::DeviceCopySegment> output_copies_, staging_copies_, commit_copies_;

  std::shared_ptr<StepRing> ring_;
  std::unique_ptr<kernels::DeviceGraph> step_graph_;
  bool may_record_ = true;  // HALFTONE_CUDA_GRAPH when the step was compiled
  bool warm_ = false;
};

}  // namespace halftone::runtime
