#include "halftone/graph/runtime/variable_store.h"

#include "halftone/core/check.h"

namespace halftone::runtime {

absl::Status VariableStore::Bind(const std::string& name,
                                 std::shared_ptr<VariableStorage> storage) {
  const auto [it, inserted] = names_.emplace(name, storage);
  if (!inserted && it->second != storage) {
    return absl::AlreadyExistsError(Concat("two variables are named \"", name, "\""));
  }
  first_names_.emplace(storage.get(), name);
  guards_.Add(storage->ShareGuard(own_guard_));
  return absl::OkStatus();
}

std::shared_ptr<VariableStorage> VariableStore::Find(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? nullptr : it->second;
}

const std::string* VariableStore::NameOf(const VariableStorage* storage) const {
  const auto it = first_names_.find(storage);
  return it == first_names_.end() ? nullptr : &it->second;
}

absl::StatusOr<std::shared_ptr<VariableStorage>> VariableStore::Declare(
    const ir::Variable& variable, const Tensor& value) {
  auto storage = std::make_shared<VariableStorage>(
      variable.type.dtype, variable.type.shape, variable.kind, variable.trainable, variable.init);
  const auto early = loaded_early_.find(variable.name);
  const Tensor& first = early == loaded_early_.end() ? value : early->second;
  if (first.defined()) {
    HT_RETURN_IF_ERROR(
        Annotate(storage->Assign(first), Concat("loaded state \"", variable.name, "\": ")));
  }
  if (early != loaded_early_.end()) loaded_early_.erase(early);
  HT_RETURN_IF_ERROR(Bind(variable.name, storage));
  return storage;
}

absl::StatusOr<std::shared_ptr<VariableStorage>> VariableStore::Resolve(
    const ir::Variable& variable, uint64_t seed) {
  std::shared_ptr<VariableStorage> storage = Find(variable.name);
  if (storage == nullptr) {
    HT_ASSIGN_OR_RETURN(storage, Declare(variable));
  }
  if (storage->dtype() != variable.type.dtype || storage->shape() != variable.type.shape) {
    return InvalidArgument("variable \"", variable.name, "\": the graph declares ",
                           variable.type.ToString(), ", the stored value is ",
                           storage->TypeString());
  }
  HT_RETURN_IF_ERROR(storage->Materialise(seed, variable.name));
  return storage;
}

absl::Status VariableStore::MaterialiseAll(uint64_t seed) {
  for (const auto& [name, storage] : names_) {
    // Under its first name, whichever comes first in the alphabet.
    HT_RETURN_IF_ERROR(storage->Materialise(seed, first_names_.at(storage.get())));
    HT_RETURN_IF_ERROR(storage->FetchToHost());
  }
  return absl::OkStatus();
}

absl::StatusOr<StateDict> VariableStore::Save() const {
  StateDict state = loaded_early_;
  std::map<const VariableStorage*, Tensor> copies;
  for (const auto& [name, storage] : names_) {
    const auto [copy, is_new] = copies.emplace(storage.get(), Tensor());
    if (is_new) {
      HT_ASSIGN_OR_RETURN(copy->second, storage->value().Copy());
    }
    state[name] = copy->second;
  }
  return state;
}

void VariableStore::Unbind(const std::string& name) {
  const auto it = names_.find(name);
  if (it == names_.end()) return;
  first_names_.erase(it->second.get());
  names_.erase(it);
}

VariableStore::Held VariableStore::Take(const std::string& name) {
  Held held{Find(name), {}};
  Unbind(name);
  if (const auto early = loaded_early_.find(name); early != loaded_early_.end()) {
    held.early = early->second;
    loaded_early_.erase(early);
  }
  return held;
}

void VariableStore::Put(const std::string& name, Held held) {
  if (held.early.defined()) loaded_early_[name] = std::move(held.early);
  if (held.storage != nullptr) HT_CHECK(Bind(name, std::move(held.storage)).ok(), "name is taken");
}

}  // namespace halftone::runtime
