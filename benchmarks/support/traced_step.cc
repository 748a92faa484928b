#include "halftone/benchmarks/support/traced_step.h"

#include <utility>

#include "halftone/passes/pass.h"

namespace halftone::benchmarks {
namespace {

// Keeps the graph that it is given, and ends the compilation.
class TakeGraph : public passes::Pass {
 public:
  const char* name() const override { return "take-graph"; }
  absl::StatusOr<bool> Run(ir::Graph& graph, passes::PassContext&) override {
    taken = graph.Clone();
    return absl::CancelledError("taken");
  }
  std::unique_ptr<ir::Graph> taken;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Graph>> TraceStep(Workload& workload, const std::string& amp) {
  TrainingStep step(workload);
  HT_RETURN_IF_ERROR(SetPrecision(step, amp));
  const auto take = std::make_shared<TakeGraph>();
  step.config.add_pass(passes::Stage::kForward, take);
  const absl::Status status = step.compile(workload.data);
  if (take->taken == nullptr) return status;
  return std::move(take->taken);
}

}  // namespace halftone::benchmarks
