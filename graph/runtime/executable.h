// Executable: a compiled graph with its variables and working memory, ready to be called.
//
// Invariants:
//  1. After the first run a run looks nothing up, takes no lock and allocates nothing outside
//     library calls: the plan (step_plan.h) and every argument table are made beforehand.
//  2. A run that faults changes no variable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/graph/runtime/arena.h"
#include "halftone/graph/runtime/runner.h"
#include "halftone/graph/runtime/step_plan.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::runtime {

class Executable {
 public:
  // Takes a graph after the pipeline: no markers. Variables are looked up in `store`, and made
  // there. Errors: those of PlanStep and of kernels::OpenCuda; ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::unique_ptr<ir::Graph> graph,
                                                            const Device& device, uint64_t seed,
                                                            VariableStore& store,
                                                            std::shared_ptr<Arena> arena);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Types of the graph's inputs and outputs, in order.
  const std::vector<ir::ValueType>& input_types() const { return plan_.input_types; }
  const std::vector<ir::ValueType>& output_types() const { return plan_.output_types; }

  // One step. Pointers to plain-layout data of the input and output types, in order. Outputs may
  // overlap neither inputs nor each other.
  // Errors: OutOfRange with location, node, value and bound, outputs are then undefined; the
  // device's.
  absl::Status Run(const void* const* inputs, void* const* outputs, uint64_t run_count);

  // The halves of Run. After Start the inputs may change; outputs are written by Finish at the
  // latest, which gives the first error of the steps since the last one. On the host Start is the
  // whole; on an accelerator it waits only for a step several calls back, and the error of an
  // earlier step may be what it returns (the new step is then not started). `*run_count` is the
  // step's, and one more once the step is started, whatever becomes of it.
  absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count) {
    return runner_->Start(inputs, outputs, run_count, observers_);
  }
  absl::Status Finish() { return runner_->Finish(); }
  // After Finish: whether the last step that Start returned OK for failed.
  bool last_step_failed() const { return runner_->last_step_failed(); }
  // The outputs of the last Start, for Buffer::SetPending. Null if none are still to come, as on
  // the host. `buffers` own the memory that Start was given, null where nobody waits by it.
  std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const> buffers) {
    return runner_->WatchOutputs(buffers);
  }
  bool writes_outputs_later() const { return runner_->writes_outputs_later(); }

  // Called around every kernel while set; waits for each one's work. Null switches it off.
  void set_profile(Profile profile) { observers_.profile = std::move(profile); }
  // Shown every value right behind its kernel while set; see Watch. Null switches it off.
  void set_watch(Watch watch) { observers_.watch = std::move(watch); }

  const ir::Graph& graph() const { return *plan_.graph; }
  // The kernels in order of execution, with the (first of the) nodes they compute.
  struct Step {
    const ir::Node* node;
    const kernels::Kernel* kernel;
  };
  std::vector<Step> steps() const;
  const std::string& kernel_log() const { return plan_.kernel_log; }
  const StepPlan& plan() const { return plan_; }

 private:
  explicit Executable(StepPlan plan) : plan_(std::move(plan)) {}

  const StepPlan plan_;
  std::unique_ptr<Runner> runner_;  // after plan_, which it refers to
  Observers observers_;
};

}  // namespace halftone::runtime
