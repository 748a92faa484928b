// Shards: which rank of a job keeps the optimizers' state of which parameter, and who has it where all of it
// is wanted (data_parallel.shard_optimizer). The owners are in Declaration::state_owners; empty: every rank has
// everything.
#pragma once

#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/types.h"
#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::nn {

// Owners under `ranks` ranks of the parameters of all optimizers: those that have one keep it; the others go,
// largest first, to the rank with the fewest bytes of parameters and state so far. So ranks differ by no more than
// the largest of them. The same on all ranks of a job.
StateOwners AssignOwners(const Declaration& declared, int ranks);

// A variable of an optimizer that one rank has.
struct ShardedVariable {
  std::string name, slot;  // "optimizer0.fc1.weight.exp_avg", "exp_avg"
  std::string parameter;
  ir::ValueType type;
  int owner;
};
// In the same order on all ranks; none where state is not sharded.
std::vector<ShardedVariable> ShardedState(const Declaration& declared);

// Whether this rank keeps the state of a parameter.
bool KeepsStateOf(const Declaration& declared, const runtime::VariableStorage& parameter);

// Collective: makes `owners` those of the state. What rank 0 has of state whose owner changes goes to the new one;
// the other ranks drop it. Errors: those of Communicator::Wait; ResourceExhausted.
absl::Status ShardState(Declaration& declared, const StateOwners& owners);

// Collective: all state on all ranks. Errors: as ShardState.
absl::Status UnshardState(Declaration& declared);

// Collective: adds the sharded state that this rank lacks to `state`, on rank `to`; -1: on all. `slot`: of
// the variables of that slot alone; empty: of all. Errors: as ShardState.
absl::Status GatherState(const Declaration& declared, int to, const std::string& slot,
                         runtime::StateDict& state);

// Drops what a load has left of others' state.
void DropStateOfOthers(Declaration& declared);

}  // namespace halftone::nn
