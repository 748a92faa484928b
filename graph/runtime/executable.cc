#include "halftone/graph/runtime/executable.h"

#include <utility>

#include "halftone/graph/runtime/compile.h"
#include "halftone/graph/runtime/device_runner.h"
#include "halftone/graph/runtime/host_runner.h"

namespace halftone::runtime {

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(std::unique_ptr<ir::Graph> graph,
                                                               const Device& device, uint64_t seed,
                                                               VariableStore& store,
                                                               std::shared_ptr<Arena> arena) {
  kernels::DeviceBackend* backend = nullptr;
  if (device.kind == Device::Kind::kCuda) {
    HT_ASSIGN_OR_RETURN(backend, kernels::OpenCuda(device.index));
    (void)backend->stream();
  }
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, TargetOf(device));
  HT_ASSIGN_OR_RETURN(StepPlan plan,
                      PlanStep(std::move(graph), device.kind, passes::StepTraitsOf(*target)));
  std::unique_ptr<Executable> executable(new Executable(std::move(plan)));
  std::vector<std::shared_ptr<VariableStorage>> variables;
  for (const ir::Variable& variable : executable->graph().variables()) {
    HT_ASSIGN_OR_RETURN(std::shared_ptr<VariableStorage> storage, store.Resolve(variable, seed));
    variables.push_back(std::move(storage));
  }
  if (backend == nullptr) {
    HT_ASSIGN_OR_RETURN(
        executable->runner_,
        HostRunner::Create(executable->plan_, std::move(variables), std::move(arena)));
  } else {
    HT_ASSIGN_OR_RETURN(
        executable->runner_,
        DeviceRunner::Create(executable->plan_, *backend, std::move(variables), std::move(arena)));
  }
  return executable;
}

absl::Status Executable::Run(const void* const* inputs, void* const* outputs, uint64_t run_count) {
  HT_RETURN_IF_ERROR(Start(inputs, outputs, &run_count));
  return Finish();
}

std::vector<Executable::Step> Executable::steps() const {
  std::vector<Step> steps;
  for (const StepPlan::Call& call : plan_.calls) {
    steps.push_back({call.nodes[0], call.kernel.get()});
  }
  return steps;
}

}  // namespace halftone::runtime
