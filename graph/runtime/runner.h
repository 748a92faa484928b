// Runner: carries a StepPlan out, again and again. And what the runners of all devices share: the
// addresses of a plan's slots, the tables that kernels are given, the clock of a profile.
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

// What of Executable differs between devices; see there.
class Runner {
 public:
  virtual ~Runner() = default;
  // `profile` may be empty.
  virtual absl::Status Start(const void* const* inputs, void* const* outputs, uint64_t* run_count,
                             const Profile& profile) = 0;
  virtual absl::Status Finish() = 0;
  virtual bool last_step_failed() const = 0;
  virtual std::shared_ptr<PendingWrite> WatchOutputs(absl::Span<Buffer* const> buffers) = 0;
  virtual bool writes_outputs_later() const = 0;
};

// Where the spaces of slots lie for one runner; null: not known yet.
struct Places {
  char* arena = nullptr;
  std::vector<void*> inputs, outputs, constants, variables, kept;

  void* AddressOf(const passes::Slot& slot) const;
};

// The arguments of all calls.
struct ArgumentTables {
  std::vector<const void*> inputs;
  std::vector<void*> outputs, workspaces, copies;

  void Fill(const StepPlan& plan, const Places& places);
  kernels::KernelArgs ArgsOf(const StepPlan& plan, size_t call, kernels::RunState* state) const;
};

// Tells `profile` of the seconds that run() takes, unless it fails.
absl::Status Timed(const Profile& profile, const StepPlan::Call& call,
                   absl::FunctionRef<absl::Status()> run);

}  // namespace halftone::runtime
