#include "halftone/graph/nn/module_container.h"

#include <algorithm>
#include <iterator>

#include "halftone/core/check.h"

namespace halftone::nn {

ModuleContainer::ModuleContainer(ModuleContainer&& other) noexcept
    : Module(std::move(other), ChildrenStay()),
      modules_(std::move(other.modules_)),
      refused_(std::move(other.refused_)) {}

// Containers in containers end one after the other, not one inside the other: refused ones may be
// nested to any depth.
ModuleContainer::~ModuleContainer() {
  std::vector<std::unique_ptr<Module>> owned;
  GiveUpOwned(owned);
  while (!owned.empty()) {
    const std::unique_ptr<Module> module = std::move(owned.back());
    owned.pop_back();
    module->GiveUpOwned(owned);
  }
}

void ModuleContainer::GiveUpOwned(std::vector<std::unique_ptr<Module>>& owner) {
  for (auto* modules : {&modules_, &refused_}) {
    std::move(modules->begin(), modules->end(), std::back_inserter(owner));
    modules->clear();
  }
}

Module& ModuleContainer::Take(const std::string& name, std::unique_ptr<Module> module) {
  HT_CHECK(module != nullptr, "a container of modules is given a module");
  Module& taken = *module;
  const size_t before = children().size();
  register_module(name, taken);
  (children().size() > before ? modules_ : refused_).push_back(std::move(module));
  return taken;
}

Module& ModuleContainer::TakeAt(size_t index, std::unique_ptr<Module> module) {
  if (index > size()) {
    Fail(OutOfRange("ModuleList: insert at ", index, "; expected 0..", size()));
    index = size();
  }
  const size_t before = size();
  Module& taken = Take(std::to_string(before), std::move(module));
  if (index == before || size() == before) return taken;
  const auto offset = static_cast<int64_t>(index);
  std::rotate(modules_.begin() + offset, modules_.end() - 1, modules_.end());
  std::vector<std::pair<std::string, Module*>> renamed;
  for (size_t i = 0; i < size(); ++i) renamed.emplace_back(std::to_string(i), modules_[i].get());
  RenameModules(std::move(renamed));
  return taken;
}

}  // namespace halftone::nn
