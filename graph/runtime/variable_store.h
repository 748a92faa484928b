// VariableStore: the names under which one graph knows its variables, and their saved form.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/runtime/variable_storage.h"

namespace halftone::runtime {

// Name -> value. Two names of one variable share one tensor.
using StateDict = std::map<std::string, Tensor>;

struct LoadReport {
  std::vector<std::string> missing;     // known here, absent from the state
  std::vector<std::string> unexpected;  // in the state, unknown here
};

struct LoadRules {
  // Type of a variable that does not exist yet but may; nullopt for an unknown name.
  std::function<std::optional<ir::ValueType>(const std::string&)> type_later;
  // State that a graph may have or lack without being another graph.
  std::function<bool(const std::string&)> is_optional;
};

class VariableStore {
 public:
  // Gives `storage` the name `name`; a storage may have several. Errors: AlreadyExists if the name
  // is taken by another storage.
  absl::Status Bind(const std::string& name, std::shared_ptr<VariableStorage> storage);
  // Null if unknown.
  std::shared_ptr<VariableStorage> Find(const std::string& name) const;
  // The first name given to `storage`; null if it has none.
  const std::string* NameOf(const VariableStorage* storage) const;
  const std::map<std::string, std::shared_ptr<VariableStorage>>& names() const { return names_; }

  // Makes a variable under a new name. Its value is what was loaded under that name before, else
  // `value`; if that is undefined too it is made when it is needed. Errors: those of Bind;
  // InvalidArgument if dtype or shape of the value differ.
  absl::StatusOr<std::shared_ptr<VariableStorage>> Declare(const ir::Variable& variable,
                                                           const Tensor& value = {});
  // The storage behind a variable of a compiled graph, with a value. Made here if the name is new
  // (state of optimizers and scalers), from what was loaded under that name before, if anything.
  // Errors: InvalidArgument if dtype or shape differ from the storage or the loaded value.
  absl::StatusOr<std::shared_ptr<VariableStorage>> Resolve(const ir::Variable& variable,
                                                           uint64_t seed);
  // Makes every value that is missing and fetches those that a device wrote last. Errors:
  // ResourceExhausted; the device's.
  absl::Status MaterialiseAll(uint64_t seed);

  // Copies of all values, including those loaded for variables that no compilation has asked for
  // yet. Requires: MaterialiseAll.
  StateDict Save() const;
  // Assigns the values of `state`. Those that rules.type_later knows are kept until Declare or
  // Resolve ask for them. With `strict`, missing or unexpected names are an error unless they are
  // optional. Errors (InvalidArgument, naming every difference) change nothing.
  absl::StatusOr<LoadReport> Load(const StateDict& state, bool strict, const LoadRules& rules = {});

 private:
  std::map<std::string, std::shared_ptr<VariableStorage>> names_;
  std::map<const VariableStorage*, std::string> first_names_;
  StateDict loaded_early_;
};

}  // namespace halftone::runtime
