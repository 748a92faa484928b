// Names of a graph's parameters and buffers, and what assigning a parameter later does to them.
#include <algorithm>
#include <iterator>

#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

using runtime::VariableStorage;
using Named = std::vector<std::pair<std::string, Parameter>>;
using Bound = std::map<std::string, std::shared_ptr<VariableStorage>>;

// Also of a module that is known: it may have new members.
void AddPaths(const std::string& path, const Module& module, internal::GraphInfo& info) {
  // A module with two names keeps its first path.
  info.modules.emplace(&module, internal::ModuleInfo{path, {}});
  for (const auto& [child, submodule] : module.children()) {
    AddPaths(path + "/" + child, *submodule, info);
    std::vector<const Module*>& parents = info.modules.at(submodule).parents;
    if (std::find(parents.begin(), parents.end(), &module) == parents.end()) {
      parents.push_back(&module);
    }
  }
}

// The first mistake in the construction of the module or of one in it.
absl::Status Mistake(const std::string& path, const Module& module) {
  HT_RETURN_IF_ERROR(Annotate(module.status(), "module \"" + path + "\": "));
  for (const auto& [child, submodule] : module.children()) {
    HT_RETURN_IF_ERROR(Mistake(path + "/" + child, *submodule));
  }
  return absl::OkStatus();
}

// What `addition` holds now.
Named Variables(const Addition& addition) {
  Named all;
  if (addition.module == nullptr) {
    if (addition.parameter.defined()) all.emplace_back(addition.name, addition.parameter);
    return all;
  }
  for (const Named& named : {addition.module->named_parameters(), addition.module->named_buffers()})
    for (const auto& [own, parameter] : named)
      all.emplace_back(addition.name + "." + own, parameter);
  return all;
}

// The name in `named` of a tensor that `entry` changed under that name before.
std::string NameIn(const OptimizerEntry& entry, const Bound& before, const Named& named,
                   const VariableStorage* storage) {
  const optim::ParameterList own = entry.optimizer.parameters();
  for (const auto& [name, parameter] : named) {
    const auto old = before.find(name);
    if (parameter.storage().get() == storage && old != before.end() &&
        std::find(own.begin(), own.end(), old->second) != own.end()) {
      return name;
    }
  }
  return "";
}

// The optimizers of `entries` with what `named` has in place of their parameters.
absl::StatusOr<std::vector<optim::Optimizer>> Follow(const std::deque<OptimizerEntry>& entries,
                                                     const Bound& before, const Named& named) {
  std::vector<optim::Optimizer> followed;
  // The tensors that now have the names of a tensor.
  std::map<const VariableStorage*, optim::ParameterList> successors;
  for (const auto& [name, parameter] : named) {
    if (const auto old = before.find(name); old != before.end()) {
      successors[old->second.get()].push_back(parameter.storage());
    }
  }
  std::map<const VariableStorage*, const OptimizerEntry*> changed_by;
  for (const OptimizerEntry& entry : entries) {
    optim::Optimizer optimizer = entry.optimizer;
    optimizer.ReplaceParameters(
        [&](const optim::ParameterRef& parameter) { return successors[parameter.get()]; });
    if (optimizer.parameters().empty()) {
      return FailedPrecondition(entry.name,
                                ": none of its parameters is part of this graph any more");
    }
    for (const optim::ParameterRef& parameter : optimizer.parameters()) {
      const auto [other, is_new] = changed_by.emplace(parameter.get(), &entry);
      if (is_new) continue;
      if (other->second == &entry) {
        return InvalidArgument(
            entry.name, ": parameter \"", NameIn(entry, before, named, parameter.get()),
            "\" is tied to one of another group; expected one group a parameter");
      }
      return InvalidArgument(entry.name, ": parameter \"",
                             NameIn(entry, before, named, parameter.get()), "\" is tied to \"",
                             NameIn(*other->second, before, named, parameter.get()), "\", which ",
                             other->second->name, " changes; expected one optimizer a parameter");
    }
    followed.push_back(std::move(optimizer));
  }
  return followed;
}

}  // namespace

void Declaration::Add(Addition addition) {
  if (addition.module != nullptr) {
    const absl::Status mistake = Mistake(addition.name, *addition.module);
    if (!mistake.ok()) return Fail(addition.added_at, mistake);
  }
  const Named variables = Variables(addition);
  for (const auto& [variable, parameter] : variables) {
    const auto known = store_.Find(variable);
    if (known == nullptr || known == parameter.storage()) continue;
    return Fail(addition.added_at,
                absl::AlreadyExistsError(Concat("two variables are named \"", variable, "\"")));
  }
  if (addition.module != nullptr) AddPaths(addition.name, *addition.module, info_);
  for (const auto& [variable, parameter] : variables) {
    Fail(addition.added_at, store_.Bind(variable, parameter.storage()));
    bound_.emplace(variable, parameter.storage());
  }
  additions_.push_back(std::move(addition));
}

std::vector<std::pair<std::string, Parameter>> Declaration::NamedVariables() const {
  Named all;
  for (const Addition& addition : additions_) {
    Named own = Variables(addition);
    std::move(own.begin(), own.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> OptimizerEntry::GroupNames(size_t group) const {
  int64_t first = 0;
  for (size_t i = 0; i < group; ++i) {
    first += static_cast<int64_t>(optimizer.groups()[i].parameters.size());
  }
  const auto begin = parameter_names.begin() + first;
  return {begin, begin + static_cast<int64_t>(optimizer.groups()[group].parameters.size())};
}

ir::Attributes OptimizerEntry::ToMarker(size_t group) const {
  return optimizer.ToMarker(name, GroupNames(group), group);
}

std::vector<std::string> OptimizerEntry::SlotsOf(size_t group) const {
  const auto rule = optim::RuleOfMarker(ToMarker(group));
  std::vector<std::string> names;
  if (!rule.ok()) return names;
  for (const optim::StateSlot& slot : rule->slots) names.push_back(slot.name);
  if (optimizer.step_options().ema.has_value()) names.emplace_back(optim::kEmaSlot);
  return names;
}

absl::StatusOr<bool> Declaration::UpdateNames() {
  const uint64_t version = internal::StructureVersion();
  if (version == structure_version_) return false;
  for (const Addition& addition : additions_) {
    if (addition.module == nullptr) continue;
    HT_RETURN_IF_ERROR(Mistake(addition.name, *addition.module));
    AddPaths(addition.name, *addition.module, info_);
  }
  const Named named = NamedVariables();
  Bound now;
  for (const auto& [variable, parameter] : named) {
    const auto& storage = now.emplace(variable, parameter.storage()).first->second;
    const bool is_state = bound_.count(variable) == 0 && store_.Find(variable) != nullptr;
    if (storage == parameter.storage() && !is_state) continue;
    return absl::AlreadyExistsError(Concat("two variables are named \"", variable, "\""));
  }
  if (now == bound_) {
    structure_version_ = version;
    return false;
  }
  HT_ASSIGN_OR_RETURN(std::vector<optim::Optimizer> followed, Follow(optimizers_, bound_, named));

  // From here on nothing fails.
  before_renaming_();
  std::vector<HeldSlot> slots = TakeSlots();
  for (const auto& old : bound_) store_.Unbind(old.first);
  for (const auto& [variable, parameter] : named) {
    HT_CHECK(store_.Bind(variable, parameter.storage()).ok(), "names were checked");
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optimizers_[i].optimizer = std::move(followed[i]);
    optimizers_[i].parameter_names.clear();
    for (const optim::ParameterRef& parameter : optimizers_[i].optimizer.parameters()) {
      optimizers_[i].parameter_names.push_back(*store_.NameOf(parameter.get()));
    }
  }
  PutSlots(std::move(slots));
  bound_ = std::move(now);
  structure_version_ = version;
  return true;
}

std::vector<Declaration::HeldSlot> Declaration::TakeSlots() {
  std::vector<HeldSlot> slots;
  for (const OptimizerEntry& entry : optimizers_) {
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      std::vector<std::string> names = entry.SlotsOf(group);
      names.emplace_back(optim::kGradSumSlot);
      for (const std::string& slot : names) {
        for (const std::string& parameter : entry.GroupNames(group)) {
          slots.push_back({&entry, slot, store_.Find(parameter),
                           store_.Take(optim::SlotVariable(entry.name, parameter, slot))});
        }
      }
    }
  }
  return slots;
}

void Declaration::PutSlots(std::vector<HeldSlot> slots) {
  for (HeldSlot& slot : slots) {
    const optim::ParameterList own = slot.optimizer->optimizer.parameters();
    if (std::find(own.begin(), own.end(), slot.of) == own.end()) continue;
    const std::string& parameter = *store_.NameOf(slot.of.get());
    store_.Put(optim::SlotVariable(slot.optimizer->name, parameter, slot.name),
               std::move(slot.held));
  }
}

}  // namespace halftone::nn
