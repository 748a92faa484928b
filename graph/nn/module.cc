#include "halftone/graph/nn/module.h"

#include <algorithm>

#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/op.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {
namespace {

using NamedParameters = std::vector<std::pair<std::string, Parameter>>;

template <typename Own>
void Collect(const Module& module, const std::string& prefix, const Own& own,
             NamedParameters* out) {
  for (const auto& [name, parameter] : own(module)) {
    if (parameter.defined()) out->emplace_back(prefix + name, parameter);
  }
  for (const auto& [name, child] : module.children()) {
    Collect(*child, prefix + name + ".", own, out);
  }
}

}  // namespace

Module::Module(Module&& other) noexcept
    : parameters_(std::move(other.parameters_)),
      buffers_(std::move(other.buffers_)),
      amp_request_(other.amp_request_),
      status_(other.status_) {
  if (!other.children_.empty()) {
    Fail(FailedPrecondition(
        "a module with registered submodules was moved; construct it in place, for example with "
        "Sequential::emplace"));
  }
}

Value Module::forward(const Value& /*x*/) {
  return internal::Fail(internal::CallSite(), Unimplemented(description(), " has no forward(x)"));
}

Value Module::operator()(const Value& x, Loc loc) {
  internal::ModuleScope scope(*this, loc);
  return forward(x);
}

std::vector<std::pair<std::string, Parameter>> Module::named_parameters() const {
  NamedParameters all;
  Collect(
      *this, "", [](const Module& m) -> const auto& { return m.parameters_; }, &all);
  return all;
}

std::vector<std::pair<std::string, Parameter>> Module::named_buffers() const {
  NamedParameters all;
  Collect(
      *this, "", [](const Module& m) -> const auto& { return m.buffers_; }, &all);
  return all;
}

std::vector<std::shared_ptr<runtime::VariableStorage>> internal::DistinctStorages(
    const std::vector<std::pair<std::string, Parameter>>& named) {
  std::vector<std::shared_ptr<runtime::VariableStorage>> all;
  for (const auto& [name, parameter] : named) {
    const auto& storage = parameter.storage();
    if (std::find(all.begin(), all.end(), storage) == all.end()) all.push_back(storage);
  }
  return all;
}

std::vector<std::shared_ptr<runtime::VariableStorage>> Module::parameters() const {
  return internal::DistinctStorages(named_parameters());
}

void Module::CheckName(const std::string& name) {
  const auto taken = [&name](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  if (name.empty() || name.find_first_of("./\"") != std::string::npos) {
    Fail(InvalidArgument("\"", name, "\" cannot name a member of a module; expected a non-empty ",
                         "name without '.', '/' and '\"'"));
  } else if (taken(parameters_) || taken(buffers_) || taken(children_)) {
    Fail(absl::AlreadyExistsError(Concat("a module has two members named \"", name, "\"")));
  }
}

void Module::register_parameter(const std::string& name, const Parameter& parameter) {
  CheckName(name);
  parameters_.emplace_back(name, parameter);
  internal::NoteStructureChange();
}

void Module::register_buffer(const std::string& name, const Parameter& buffer) {
  CheckName(name);
  buffers_.emplace_back(name, buffer);
  internal::NoteStructureChange();
}

void Module::register_module(const std::string& name, Module& child) {
  CheckName(name);
  if (!child.status_.ok()) Fail(Annotate(child.status_, name + ": "));
  children_.emplace_back(name, &child);
  internal::NoteStructureChange();
}

void Module::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace halftone::nn
