// VariableStore: the names under which one graph knows its variables, and their saved form.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/runtime/load_options.h"
#include "halftone/graph/runtime/variable_storage.h"

namespace halftone::runtime {

struct LoadRules {
  bool strict = true;
  bool convert = false;  // LoadOptions::convert
  // Type of a variable that compiling makes and that may not exist yet; nullopt for another name.
  std::function<std::optional<ir::ValueType>(const std::string&)> type_later = nullptr;
  // State that a graph may have or lack without being another graph.
  std::function<bool(const std::string&)> is_optional = nullptr;
};

class VariableStore {
 public:
  VariableStore() : own_guard_(std::make_shared<StateGuard>()) { guards_.Add(own_guard_); }
  // What to hold while values are read or written.
  const StateGuards& guards() const { return guards_; }

  // Gives `storage` the name `name`; a storage may have several. Errors: AlreadyExists if the name
  // is taken by another storage.
  absl::Status Bind(const std::string& name, std::shared_ptr<VariableStorage> storage);
  // Takes a name away. A storage with several must lose them all before it is bound anew: which of
  // them is its first is not followed.
  void Unbind(const std::string& name);
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
  // yet. Requires: MaterialiseAll. Errors: ResourceExhausted.
  absl::StatusOr<StateDict> Save() const;
  // Assigns the values of `state`. Those that rules.type_later knows are kept until Declare or
  // Resolve ask for them. Of a storage with several names one is enough; different values for them
  // are an error. With rules.strict, so are other types, and missing or unexpected names unless
  // they are optional; else the first keep their value, or start anew where rules.type_later knows them.
  // Errors (InvalidArgument, naming every difference; ResourceExhausted) change nothing.
  absl::StatusOr<LoadReport> Load(const StateDict& state, const LoadRules& rules = {});

  // A variable taken out, or the value that waits for it; both undefined if there is neither.
  struct Held {
    std::shared_ptr<VariableStorage> storage;
    Tensor early;
  };
  Held Take(const std::string& name);
  // Puts it back under a name that is free.
  void Put(const std::string& name, Held held);

 private:
  struct Change;  // what Load is about to do
  absl::StatusOr<Change> Compare(const StateDict& state, const LoadRules& rules) const;

  std::shared_ptr<StateGuard> own_guard_;
  StateGuards guards_;  // own_guard_ and those of shared variables
  std::map<std::string, std::shared_ptr<VariableStorage>> names_;
  std::map<const VariableStorage*, std::string> first_names_;
  StateDict loaded_early_;
};

}  // namespace halftone::runtime
