#include "halftone/graph/runtime/variable_store.h"

namespace halftone::runtime {
namespace {

// Cut short: a state that was meant for another graph has many names to say.
std::string Join(const std::vector<std::string>& parts, const char* between) {
  constexpr size_t kShown = 32;
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kShown; ++i)
    text += (i == 0 ? "" : between) + parts[i];
  if (parts.size() > kShown) text += Concat(between, "and ", parts.size() - kShown, " more");
  return text;
}

std::string TypeOf(const Tensor& value) {
  return value.defined() ? value.TypeString() : "an undefined tensor";
}

// Says what does not fit; nothing if `value` does.
void CheckType(const std::string& name, const Tensor& value, const ir::ValueType& type,
               std::vector<std::string>& mismatched) {
  if (value.defined() && value.dtype() == type.dtype && value.shape() == type.shape) return;
  mismatched.push_back(Concat("\"", name, "\" is ", TypeOf(value), ", expected ", type.ToString()));
}

// Whether a name that only one side knows makes a strict load fail.
bool Matters(const LoadRules& rules, const std::string& name) {
  return !rules.is_optional || !rules.is_optional(name);
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

absl::StatusOr<LoadReport> VariableStore::Load(const StateDict& state, bool strict,
                                               const LoadRules& rules) {
  LoadReport report;
  std::vector<std::string> mismatched;
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;  // these two: what matters of the report
  StateDict later;
  for (const auto& entry : names_) {
    if (state.count(entry.first) != 0) continue;
    report.missing.push_back(entry.first);
    if (Matters(rules, entry.first)) missing.push_back(entry.first);
  }
  for (const auto& [name, value] : state) {
    if (const std::shared_ptr<VariableStorage> storage = Find(name)) {
      CheckType(name, value, {storage->dtype(), storage->shape()}, mismatched);
    } else if (const auto type = rules.type_later ? rules.type_later(name) : std::nullopt) {
      CheckType(name, value, *type, mismatched);
      later[name] = value;
    } else if (!value.defined()) {
      mismatched.push_back(Concat("\"", name, "\" is ", TypeOf(value)));
    } else {
      report.unexpected.push_back(name);
      if (Matters(rules, name)) unexpected.push_back(name);
    }
  }
  std::vector<std::string> problems;
  if (!mismatched.empty()) problems.push_back(Join(mismatched, "; "));
  if (strict && !missing.empty()) problems.push_back("missing: " + Join(missing, ", "));
  if (strict && !unexpected.empty()) problems.push_back("unexpected: " + Join(unexpected, ", "));
  if (!problems.empty()) return InvalidArgument("load_state_dict: ", Join(problems, "; "));

  // A strict state is whole; what another one left waiting does not belong to it.
  if (strict) loaded_early_.clear();
  for (const auto& [name, value] : later) loaded_early_[name] = value.Clone();
  for (const auto& [name, value] : state) {
    const std::shared_ptr<VariableStorage> storage = Find(name);
    if (storage != nullptr) HT_RETURN_IF_ERROR(storage->Assign(value));
  }
  return report;
}

}  // namespace halftone::runtime
