#include "halftone/graph/runtime/variable_store.h"

namespace halftone::runtime {
namespace {

std::string Join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

}  // namespace

absl::Status VariableStore::Bind(const std::string& name,
                                 std::shared_ptr<VariableStorage> storage) {
  const auto [it, inserted] = names_.emplace(name, storage);
  if (!inserted && it->second != storage) {
    return absl::AlreadyExistsError(Concat("two variables are named \"", name, "\""));
  }
  first_names_.emplace(storage.get(), name);
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

absl::StatusOr<std::shared_ptr<VariableStorage>> VariableStore::Resolve(
    const ir::Variable& variable, uint64_t seed) {
  std::shared_ptr<VariableStorage> storage = Find(variable.name);
  if (storage == nullptr) {
    storage = std::make_shared<VariableStorage>(variable.type.dtype, variable.type.shape,
                                                variable.kind, variable.trainable, variable.init);
    const auto early = loaded_early_.find(variable.name);
    if (early != loaded_early_.end()) {
      HT_RETURN_IF_ERROR(Annotate(storage->Assign(early->second),
                                  Concat("loaded state \"", variable.name, "\": ")));
      loaded_early_.erase(early);
    }
    HT_RETURN_IF_ERROR(Bind(variable.name, storage));
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
  }
  return absl::OkStatus();
}

StateDict VariableStore::Save() const {
  StateDict state = loaded_early_;
  std::map<const VariableStorage*, Tensor> copies;
  for (const auto& [name, storage] : names_) {
    const auto [copy, is_new] = copies.emplace(storage.get(), Tensor());
    if (is_new) copy->second = storage->value().Clone();
    state[name] = copy->second;
  }
  return state;
}

absl::StatusOr<LoadReport> VariableStore::Load(
    const StateDict& state, bool strict,
    const std::function<bool(const std::string&)>& expect_later) {
  LoadReport report;
  std::vector<std::string> mismatched;
  for (const auto& [name, storage] : names_) {
    if (state.count(name) == 0) report.missing.push_back(name);
  }
  for (const auto& [name, value] : state) {
    const std::shared_ptr<VariableStorage> storage = Find(name);
    if (storage == nullptr) {
      if (!value.defined()) {
        mismatched.push_back(Concat("\"", name, "\" is an undefined tensor"));
      } else if (!expect_later(name)) {
        report.unexpected.push_back(name);
      }
    } else if (!value.defined() || value.dtype() != storage->dtype() ||
               value.shape() != storage->shape()) {
      mismatched.push_back(Concat("\"", name, "\" is ",
                                  value.defined() ? value.TypeString() : "an undefined tensor",
                                  ", expected ", storage->TypeString()));
    }
  }
  std::vector<std::string> problems = mismatched;
  if (strict && !report.missing.empty()) {
    problems.push_back("missing: " + Join(report.missing, ", "));
  }
  if (strict && !report.unexpected.empty()) {
    problems.push_back("unexpected: " + Join(report.unexpected, ", "));
  }
  if (!problems.empty()) return InvalidArgument("load_state_dict: ", Join(problems, "; "));

  for (const auto& [name, value] : state) {
    if (const std::shared_ptr<VariableStorage> storage = Find(name)) {
      HT_RETURN_IF_ERROR(storage->Assign(value));
    } else if (expect_later(name)) {
      loaded_early_[name] = value.Clone();
    }
  }
  return report;
}

}  // namespace halftone::runtime
