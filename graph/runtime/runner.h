// Runner: carries a StepPlan out, again and again. And what the runners of all devices share: the
// addresses of a plan's slots, the tables that kernels are given, who looks on.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "halftone/core/allocator.h"
#include "halftone/graph/runtime/step_plan.h"

namespace halftone::runtime {

// Told of every kernel's time.
using Profile = std::function<void(const ir::Node&, const kernels::Kernel&, double seconds)>;
// Shown every value that a kernel has written, before another kernel runs: a copy in host memory,
// its elements in the order of the value's layout. An error ends the step.
using Watch = std::function<absl::Status(ir::Value value, const Tensor& tensor)>;

// Who is told of every kernel of a step; the step then waits for the work of each.
struct Observers {
  Profile profile;
  Watch watch;
  bool any() const { return profile != nullptr || watch != nullptr; }
};

// What of Executable differs between devices; see there.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count,
                             const Observers& observers) = 0;
  virtual absl::Status Finish() = 0;
  virtual bool last_step_failed() const = 0;
  virtual std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const> buffers) = 0;
  virtual bool writes_outputs_later() const = 0;
};

// Where the spaces of slots lie for one runner; null: not known yet.
struct Places {
  char* arena = nullptr;
  std::vector<void*> inputs, outputs, constants, variables, kept, packed;

  void* AddressOf(const passes::Slot& slot) const;
};

// The arguments of all calls.
struct ArgumentTables {
  std::vector<const void*> inputs;
  std::vector<void*> outputs, workspaces, copies;
  std::vector<const void*> packed;  // by call

  void Fill(const StepPlan& plan, const Places& places);
  kernels::KernelArgs ArgsOf(const StepPlan& plan, size_t call, kernels::RunState* state) const;
};

// What observers need of a device to see one call.
struct ObservedCall {
  absl::FunctionRef<absl::Status()> run;  // and waits for the work
  absl::FunctionRef<absl::Status(void* to, const void* from, size_t bytes)> copy_to_host;
};
// Runs `call`, whose results lie at `outputs`, and tells the observers, unless it fails.
absl::Status RunObserved(const Observers& observers, const StepPlan::Call& call,
                         void* const* outputs, const ObservedCall& observed);

}  // namespace halftone::runtime
