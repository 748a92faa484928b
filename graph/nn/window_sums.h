// WindowSums: what is kept of a window of micro-batches under way (GraphConfig::accumulate_calls), and how
// that of several ranks is stored: each rank adds up the gradients of its own part of the batches, and they are
// reduced once, when the window ends.
//
// A checkpoint of n ranks has one tensor, [n, ...], in the place of each sum and flag that ranks have of
// their own: those of all, in the order of the ranks.
#pragma once

#include <map>
#include <string>

#include "halftone/core/status.h"
#include "halftone/graph/ir/types.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::nn {

// Types of what one rank keeps of a window, whether any of it is there or not: the number of micro-batches,
// the sums, and the flags of scalers.
std::map<std::string, ir::ValueType> WindowState(const Declaration& declared);
// The same but for the number, which all ranks have alike: what each has of its own.
std::map<std::string, ir::ValueType> OwnWindowState(const Declaration& declared);

// Collective: rank 0's `state` gets the sums and flags of all ranks in the place of its own. Errors: those of
// Communicator::Wait; FailedPrecondition: ranks with sums of other parameters; ResourceExhausted.
absl::Status GatherWindow(const Declaration& declared, const StepConfig& config,
                          runtime::StateDict& state);

// Of a state that GatherWindow made leaves what this rank goes on with: in a job of as many ranks what
// it had, bit for bit; else its part of what they had together, the mean or sum of their sums. Other states stay
// as they are: who has one that is a rank's own loads it there.
void TakeOwnWindow(const Declaration& declared, const StepConfig& config,
                   runtime::StateDict& state);

}  // namespace halftone::nn
