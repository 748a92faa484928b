// HostExecutable: calls kernels on host memory, one after the other.
#pragma once

#include <memory>
#include <vector>

#include "halftone/graph/runtime/executable.h"

namespace halftone::runtime {

// A fault ends the run at its node: no kernel that can fault runs after a variable was written in
// place, and everything else is copied at the end. Outputs are written during the step.
class HostExecutable : public Executable {
 public:
  // As Executable::Create.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::unique_ptr<ir::Graph> graph,
                                                            const Device& device, uint64_t seed,
                                                            VariableStore& store,
                                                            std::shared_ptr<Arena> arena);

  absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count) override;
  absl::Status Finish() override { return absl::OkStatus(); }
  bool last_step_failed() const override { return false; }
  std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const>) override { return nullptr; }
  bool writes_outputs_later() const override { return false; }

 private:
  // A pointer of a table that the caller gives anew for each run.
  struct Patch {
    size_t table_index;
    Space space;
    size_t argument;
  };

  HostExecutable() = default;
  absl::Status RunStep(const void* const* inputs, void* const* outputs, uint64_t* run_count);
  void FindPatches();
  // Null for the caller's own memory.
  void* Fixed(const passes::Slot& slot) const;
  const void* Address(const passes::Slot& slot, const void* const* inputs,
                      void* const* outputs) const;
  void Bind();
  absl::Status FetchVariables() const;
  absl::Status RunKernels(uint64_t run_count);

  uint64_t bound_generation_ = 0;
  std::vector<const void*> input_table_;
  std::vector<void*> output_table_;
  std::vector<Patch> input_patches_, output_patches_;
};

}  // namespace halftone::runtime
