// What the ranks of a job do together besides running steps: compare what they have compiled, take
// the state of rank 0, agree on errors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/nn/steps_under_way.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::nn {

// Whether training steps are made together with other ranks.
bool IsDataParallel(const StepConfig& config);

// Whether ranks keep and update some of the parameters each.
bool ShardsState(const StepConfig& config);

// OK if `status` is on every rank; else the error of the first rank that has one. Only `status` where
// the step is not data parallel. `what` is named in errors of messages.
absl::Status AgreeOn(const StepConfig& config, const absl::Status& status, const char* what);

// The ranks compare what they have traced: version, device, configuration, inputs, graph; and how many
// micro-batches wait for their update, whose sums each rank has of its own. Errors: FailedPrecondition, on every
// rank: the first rank that differs from rank 0, and in what; those of Communicator::Wait.
absl::Status CompareTraces(const ir::Graph& traced, const StepConfig& config, const Device& device,
                           uint64_t micro_batches);

// Readies the device for steps with the other ranks. Errors, on every rank: the first rank's whose device
// cannot be opened; those of kernels::DeviceBackend::Join.
absl::Status JoinOnDevice(const Device& device);

// The exchanges of a lowered graph, in their order, by size: what all ranks must have alike even where
// their processors differ.
std::string ExchangesOf(const ir::Graph& lowered);
// Errors: as CompareTraces.
absl::Status CompareExchanges(const std::string& own, const std::string& graph);

// Once traces are known to be alike, makes this one that of its rank: random masks of its own, which depend on the
// rank's number alone, on every rank but 0; the number itself where ranks update parameters of their own.
void MakeOwn(ir::Graph& traced);

// Gives all ranks the values that rank 0 has of these variables, each rank those of its step, and its counts.
absl::Status TakeStateOfFirst(const std::vector<ir::Variable>& variables,
                              const runtime::VariableStore& store, RunCounts& counts);

}  // namespace halftone::nn
