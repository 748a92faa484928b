#include "halftone/graph/nn/module.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "halftone/graph/nn/module_scope.h"
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

// The module and all below it, each once.
std::vector<Module*> Tree(Module& root) {
  std::vector<Module*> tree = {&root};
  std::set<const Module*> seen = {&root};
  for (size_t i = 0; i < tree.size(); ++i) {
    for (const auto& [name, child] : tree[i]->children()) {
      if (seen.insert(child).second) tree.push_back(child);
    }
  }
  return tree;
}

// Whether modes may change now: not while a graph that has one of the modules is being described.
bool MayChange(const std::vector<Module*>& modules, const char* what, Loc loc) {
  return std::all_of(modules.begin(), modules.end(),
                     [&](const Module* module) { return internal::MayChange(*module, what, loc); });
}

std::atomic<uint64_t> modes_version = 1;

}  // namespace

uint64_t internal::ModesVersion() { return modes_version.load(std::memory_order_relaxed); }
void internal::NoteModeChange() { modes_version.fetch_add(1, std::memory_order_relaxed); }

Module::Module(Module&& other, ChildrenStay) noexcept
    : parameters_(std::move(other.parameters_)),
      buffers_(std::move(other.buffers_)),
      children_(std::move(other.children_)),
      depth_(other.depth_),
      amp_(std::move(other.amp_)),
      training_(other.training_),
      frozen_(other.frozen_),
      recomputes_(other.recomputes_),
      status_(other.status_) {}

Module::Module(Module&& other) noexcept : Module(std::move(other), ChildrenStay()) {
  if (!children_.empty()) {
    children_.clear();
    Fail(
        FailedPrecondition("a module with registered submodules was moved; "
                           "construct it in place, for example with Sequential::emplace"));
  }
}

Value Module::forward(const Value& /*x*/) {
  return nn::Fail(
      internal::CallSite(),
      Unimplemented(description(), " has no forward(x); expected a call with Values, or of one of ",
                    "its own functions"));
}

Values Module::forward(const Values& in) {
  nn::Fail(internal::CallSite(),
           Unimplemented(description(), " has no forward(values); expected a call with one value"));
  return Values(std::vector<Value>(in.size()));
}

Value Module::operator()(const Value& x, Loc loc) {
  const ModuleScope scope(*this, loc);
  if (amp_ == ModuleAmp()) return forward(x);
  const Value operand = internal::AmpOperands(*this, {x}, loc).vector()[0];
  return internal::AmpResults(*this, {forward(operand)}, loc).vector()[0];
}

Values Module::operator()(const Values& in, Loc loc) {
  const ModuleScope scope(*this, loc);
  if (amp_ == ModuleAmp()) return forward(in);
  return internal::AmpResults(*this, forward(internal::AmpOperands(*this, in, loc)), loc);
}

void Module::train(bool on, Loc loc) {
  const std::vector<Module*> tree = Tree(*this);
  if (!MayChange(tree, on ? "train" : "eval", loc)) return;
  for (Module* module : tree) module->training_ = on;
  internal::NoteModeChange();
}

void Module::freeze(Loc loc) {
  const std::vector<Module*> tree = Tree(*this);
  if (!MayChange(tree, "freeze", loc)) return;
  for (Module* module : tree) module->frozen_ = true;
  internal::NoteModeChange();
}

void Module::unfreeze(Loc loc) {
  const std::vector<Module*> tree = Tree(*this);
  if (!MayChange(tree, "unfreeze", loc)) return;
  for (Module* module : tree) module->frozen_ = false;
  internal::NoteModeChange();
}

void Module::keep_fp32(Loc loc) {
  ModuleAmp amp = amp_;
  amp.fp32 = true;
  amp.low = false;
  SetAmp(amp, "keep_fp32", loc);
}

void Module::allow_low(Loc loc) {
  ModuleAmp amp = amp_;
  amp.fp32 = false;
  amp.low = true;
  SetAmp(amp, "allow_low", loc);
}

void Module::set_amp(const ModuleAmp& amp, Loc loc) {
  if (amp.fp32 && amp.low) {
    return Fail(InvalidArgument(description(), ": set_amp got fp32 and low; expected one of them"));
  }
  for (const int i : amp.fp32_inputs) {
    if (i >= 0) continue;
    return Fail(InvalidArgument(description(), ": set_amp names input ", i,
                                "; expected a position from 0"));
  }
  SetAmp(amp, "set_amp", loc);
}

void Module::SetAmp(const ModuleAmp& amp, const char* what, Loc loc) {
  if (!internal::MayChange(*this, what, loc)) return;
  amp_ = amp;
  internal::NoteModeChange();
}

void Module::recompute(bool on, Loc loc) {
  if (!internal::MayChange(*this, "recompute", loc)) return;
  recomputes_ = on;
  internal::NoteModeChange();
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

bool Module::CheckNewMember(const std::string& name, const char* function) {
  if (!internal::MayChange(*this, function, internal::CallSite())) return false;
  const auto taken = [&name](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  if (name.empty() || name.find_first_of("./\"") != std::string::npos) {
    Fail(InvalidArgument("\"", name, "\" cannot name a member of a module; expected a non-empty ",
                         "name without '.', '/' and '\"'"));
    return false;
  }
  if (taken(parameters_) || taken(buffers_) || taken(children_)) {
    Fail(absl::AlreadyExistsError(Concat("a module has two members named \"", name, "\"")));
    return false;
  }
  return true;
}

void Module::register_parameter(const std::string& name, const Parameter& parameter) {
  if (!CheckNewMember(name, "register_parameter")) return;
  parameters_.emplace_back(name, parameter);
  internal::NoteStructureChange();
}

void Module::register_buffer(const std::string& name, const Parameter& buffer) {
  if (!CheckNewMember(name, "register_buffer")) return;
  buffers_.emplace_back(name, buffer);
  internal::NoteStructureChange();
}

void Module::register_module(const std::string& name, Module& child) {
  if (!CheckNewMember(name, "register_module")) return;
  if (!child.status_.ok()) return Fail(Annotate(child.status_, name + ": "));
  if (absl::Status error = Deepen(name, child); !error.ok()) return Fail(std::move(error));
  children_.emplace_back(name, &child);
  internal::NoteStructureChange();
}

absl::Status Module::Deepen(const std::string& name, Module& child) const {
  std::vector<std::pair<Module*, int>> pending = {{&child, depth_ + 1}};
  while (!pending.empty()) {
    const auto [module, depth] = pending.back();
    pending.pop_back();
    if (module == this) return InvalidArgument("\"", name, "\": a module cannot contain itself");
    if (module->depth_ >= depth) continue;
    if (depth > kMaxDepth) {
      return InvalidArgument("\"", name, "\": expected at most ", kMaxDepth,
                             " modules in one another");
    }
    module->depth_ = depth;
    for (const auto& [own, inner] : module->children_) pending.emplace_back(inner, depth + 1);
  }
  return absl::OkStatus();
}

void Module::RenameModules(std::vector<std::pair<std::string, Module*>> children) {
  children_ = std::move(children);
  internal::NoteStructureChange();
}

void Module::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace halftone::nn
