// VariableStore::Load: first what differs, then copies of what could fail, then the values.
#include <cstring>
#include <set>

#include "halftone/graph/runtime/load_rename.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::runtime {
namespace {

std::string TypeOf(const Tensor& value) {
  return value.defined() ? value.TypeString() : "an undefined tensor";
}

bool Fits(const Tensor& value, const ir::ValueType& type) {
  return value.defined() && value.dtype() == type.dtype && value.shape() == type.shape;
}

// Whether a name that only one side knows makes a strict load fail.
bool Matters(const LoadRules& rules, const std::string& name) {
  return !rules.is_optional || !rules.is_optional(name);
}

}  // namespace

struct VariableStore::Change {
  LoadReport report;
  std::map<VariableStorage*, Tensor> values;  // to assign
  StateDict later;                            // to keep for variables that do not exist yet
  std::vector<std::string> anew;              // back to their first values
};

absl::StatusOr<VariableStore::Change> VariableStore::Compare(const StateDict& state,
                                                             const LoadRules& rules) const {
  Change change;
  LoadReport& report = change.report;
  std::vector<std::string> mismatched, conflicts;
  std::vector<std::string> missing, unexpected;  // what matters of the report
  std::set<const VariableStorage*> in_state;
  std::map<const VariableStorage*, std::string> taken;  // under which name
  // The value as it is taken; undefined if it is not.
  const auto fitted = [&](const std::string& name, const Tensor& value,
                          const ir::ValueType& type) -> absl::StatusOr<Tensor> {
    if (Fits(value, type)) return value;
    if (rules.convert && value.defined() && value.shape() == type.shape && IsFloat(value.dtype()) &&
        IsFloat(type.dtype)) {
      return value.Convert(type.dtype);
    }
    report.mismatched.push_back({name, TypeOf(value), type.ToString()});
    mismatched.push_back(
        Concat("\"", name, "\" is ", TypeOf(value), ", expected ", type.ToString()));
    return Tensor();
  };
  for (const auto& [name, value] : state) {
    const auto type = rules.type_later ? rules.type_later(name) : std::nullopt;
    if (const std::shared_ptr<VariableStorage> storage = Find(name)) {
      in_state.insert(storage.get());
      HT_ASSIGN_OR_RETURN(const Tensor fitting,
                          fitted(name, value, {storage->dtype(), storage->shape()}));
      if (!fitting.defined()) {
        if (type.has_value()) change.anew.push_back(name);
        continue;
      }
      const std::string& first = taken.emplace(storage.get(), name).first->second;
      const auto [other, is_new] = change.values.emplace(storage.get(), fitting);
      if (!is_new && !BitEqual(other->second, fitting)) {
        conflicts.push_back(Concat("\"", first, "\" and \"", name,
                                   "\" are one tensor here, and differ in the state"));
      }
    } else if (type.has_value()) {
      HT_ASSIGN_OR_RETURN(const Tensor later, fitted(name, value, *type));
      if (later.defined()) {
        change.later[name] = later;
      } else {
        change.anew.push_back(name);
      }
    } else if (!value.defined() && rules.strict) {
      mismatched.push_back(Concat("\"", name, "\" is ", TypeOf(value)));
    } else {
      report.unexpected.push_back(name);
      if (Matters(rules, name)) unexpected.push_back(name);
    }
  }
  for (const auto& [name, storage] : names_) {
    if (in_state.count(storage.get()) != 0) continue;
    report.missing.push_back(name);
    if (Matters(rules, name)) missing.push_back(name);
  }
  std::vector<std::string> problems = std::move(conflicts);
  if (rules.strict && !mismatched.empty()) problems.push_back(JoinSome(mismatched, "; "));
  if (rules.strict && !missing.empty()) problems.push_back("missing: " + JoinSome(missing, ", "));
  if (rules.strict && !unexpected.empty()) {
    problems.push_back("unexpected: " + JoinSome(unexpected, ", "));
  }
  if (problems.empty()) return change;
  return InvalidArgument("load_state_dict: ", JoinSome(problems, "; "));
}

absl::StatusOr<LoadReport> VariableStore::Load(const StateDict& state, const LoadRules& rules) {
  HT_ASSIGN_OR_RETURN(Change change, Compare(state, rules));
  for (auto& entry : change.later) {
    HT_ASSIGN_OR_RETURN(entry.second, entry.second.Copy());
  }
  for (const auto& entry : change.values) HT_RETURN_IF_ERROR(entry.first->Reserve());

  // From here on nothing fails. A strict state is whole; what another one left waiting does not
  // belong to it.
  if (rules.strict) loaded_early_.clear();
  for (auto& [name, value] : change.later) loaded_early_[name] = std::move(value);
  for (const auto& [storage, value] : change.values) HT_RETURN_IF_ERROR(storage->Assign(value));
  for (const std::string& name : change.anew) {
    loaded_early_.erase(name);
    if (const auto found = names_.find(name); found != names_.end()) found->second->StartAnew();
  }
  return std::move(change.report);
}

}  // namespace halftone::runtime
