#include "halftone/graph/nn/shards.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

using distributed::Communicator;
using runtime::VariableStorage;

// Calls fn(optimizer, group, name, storage) for each parameter that an optimizer updates.
template <typename Fn>
void ForEachParameter(const Declaration& declared, const Fn& fn) {
  for (const OptimizerEntry& entry : declared.optimizers()) {
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      for (const std::string& name : entry.GroupNames(group)) {
        fn(entry, group, name, *declared.store().Find(name));
      }
    }
  }
}

// The value of a variable here, on the host; undefined if there is none.
absl::StatusOr<Tensor> ValueOf(const runtime::VariableStore::Held& held) {
  if (held.storage == nullptr || !held.storage->materialised()) return held.early;
  HT_RETURN_IF_ERROR(held.storage->FetchToHost());
  return held.storage->value();
}

// Hands one variable to its new owner. `at_first`: whether rank 0 has a value.
absl::Status HandOver(const ShardedVariable& variable, bool at_first,
                      runtime::VariableStore& store) {
  Communicator& world = distributed::World();
  runtime::VariableStore::Held held = store.Take(variable.name);
  const bool is_owner = world.rank() == variable.owner;
  if (at_first && variable.owner != 0 && (world.rank() == 0 || is_owner)) {
    Tensor value;
    if (is_owner) {
      HT_ASSIGN_OR_RETURN(value, Tensor::Allocate(variable.type.dtype, variable.type.shape));
    } else {
      HT_ASSIGN_OR_RETURN(value, ValueOf(held));
    }
    HT_RETURN_IF_ERROR(world.Send(value.raw(), value.num_bytes(), 0, variable.owner));
    held = {nullptr, value};
  } else {
    if (at_first && variable.owner != 0) {  // neither gives nor takes, but counts the message
      HT_RETURN_IF_ERROR(world.Send(nullptr, 0, 0, variable.owner));
    }
    // What another rank than the first has is not the job's state.
    const bool has_value =
        held.early.defined() || (held.storage != nullptr && held.storage->materialised());
    if (has_value && !at_first) held = {};
  }
  if (is_owner) store.Put(variable.name, std::move(held));
  return absl::OkStatus();
}

}  // namespace

StateOwners AssignOwners(const Declaration& declared, int ranks) {
  struct Load {
    const VariableStorage* parameter;
    int64_t bytes;
  };
  std::vector<Load> loads;
  std::vector<int64_t> of_rank(static_cast<size_t>(ranks));
  StateOwners owners;
  ForEachParameter(declared, [&](const OptimizerEntry& entry, size_t group, const std::string&,
                                 const VariableStorage& parameter) {
    const auto copies = static_cast<int64_t>(1 + entry.SlotsOf(group).size());
    const int64_t bytes =
        copies * parameter.shape().num_elements() * static_cast<int64_t>(SizeOf(parameter.dtype()));
    const auto known = declared.state_owners().find(&parameter);
    if (known == declared.state_owners().end()) return loads.push_back({&parameter, bytes});
    owners.insert(*known);
    of_rank[static_cast<size_t>(known->second)] += bytes;
  });
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.bytes > b.bytes; });
  for (const Load& load : loads) {
    const auto least = std::min_element(of_rank.begin(), of_rank.end());
    *least += load.bytes;
    owners.emplace(load.parameter, static_cast<int>(least - of_rank.begin()));
  }
  return owners;
}

std::vector<ShardedVariable> ShardedState(const Declaration& declared) {
  std::vector<ShardedVariable> variables;
  if (declared.state_owners().empty()) return variables;
  ForEachParameter(declared, [&](const OptimizerEntry& entry, size_t group, const std::string& name,
                                 const VariableStorage& parameter) {
    const auto owner = declared.state_owners().find(&parameter);
    if (owner == declared.state_owners().end()) return;
    for (std::string& slot : entry.SlotsOf(group)) {
      variables.push_back({optim::SlotVariable(entry.name, name, slot),
                           slot,
                           name,
                           {parameter.dtype(), parameter.shape()},
                           owner->second});
    }
  });
  return variables;
}

bool KeepsStateOf(const Declaration& declared, const VariableStorage& parameter) {
  const auto owner = declared.state_owners().find(&parameter);
  return owner == declared.state_owners().end() || owner->second == distributed::Rank();
}

absl::Status ShardState(Declaration& declared, const StateOwners& owners) {
  const StateOwners before = declared.state_owners();
  declared.set_state_owners(owners);
  std::vector<ShardedVariable> moved = ShardedState(declared);
  std::erase_if(moved, [&](const ShardedVariable& variable) {
    return before.contains(declared.store().Find(variable.parameter).get());
  });
  std::string has_value;  // of rank 0
  for (const ShardedVariable& variable : moved) {
    const runtime::VariableStore::Held held = declared.store().Take(variable.name);
    const bool has =
        held.early.defined() || (held.storage != nullptr && held.storage->materialised());
    has_value += has ? '1' : '0';
    declared.store().Put(variable.name, held);
  }
  HT_RETURN_IF_ERROR(
      distributed::World().Broadcast(has_value.data(), has_value.size(), /*root=*/0));
  for (size_t i = 0; i < moved.size(); ++i) {
    HT_RETURN_IF_ERROR(HandOver(moved[i], has_value[i] == '1', declared.store()));
  }
  return absl::OkStatus();
}

absl::Status UnshardState(Declaration& declared) {
  runtime::StateDict others;
  HT_RETURN_IF_ERROR(GatherState(declared, -1, "", others));
  for (auto& [name, value] : others) declared.store().Put(name, {nullptr, std::move(value)});
  declared.set_state_owners({});
  return absl::OkStatus();
}

absl::Status GatherState(const Declaration& declared, int to, const std::string& slot,
                         runtime::StateDict& state) {
  Communicator& world = distributed::World();
  for (const ShardedVariable& variable : ShardedState(declared)) {
    if (!slot.empty() && variable.slot != slot) continue;
    const bool is_owner = world.rank() == variable.owner;
    const bool takes = !is_owner && (to < 0 || world.rank() == to);
    Tensor value;
    if (is_owner) {
      const auto storage = declared.store().Find(variable.name);
      HT_ASSIGN_OR_RETURN(value, ValueOf({storage, {}}));
    }
    // A step that failed to compile may have left it without one; then it is as at first.
    char has_value = value.defined() ? 1 : 0;
    HT_RETURN_IF_ERROR(world.Broadcast(&has_value, 1, variable.owner));
    if (has_value == 0) continue;
    if (takes) {
      HT_ASSIGN_OR_RETURN(value, Tensor::Allocate(variable.type.dtype, variable.type.shape));
    }
    const size_t bytes = variable.type.num_bytes();
    if (to < 0) {
      HT_RETURN_IF_ERROR(world.Broadcast(value.raw(), bytes, variable.owner));
    } else {
      HT_RETURN_IF_ERROR(
          world.Send(is_owner || takes ? value.raw() : nullptr, bytes, variable.owner, to));
    }
    if (takes) state[variable.name] = std::move(value);
  }
  return absl::OkStatus();
}

void DropStateOfOthers(Declaration& declared) {
  for (const ShardedVariable& variable : ShardedState(declared)) {
    if (variable.owner != distributed::Rank()) declared.store().Take(variable.name);
  }
}

}  // namespace halftone::nn
