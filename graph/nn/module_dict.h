// ModuleDict: modules by key, in the order in which they were added.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "halftone/graph/nn/module_container.h"

namespace halftone::nn {

// Owns its modules, which are M or derived from it; their names are the keys. Has no forward().
// Errors (in status()): a key that is taken or cannot be a name, see Module.
// Example: heads_.emplace<nn::Linear>("classes", 64, 10); ... heads_["classes"](x)
template <typename M>
class ModuleDictOf : public ModuleContainer, public Emplace<ModuleDictOf<M>, M, std::string> {
 public:
  class Iterator {
   public:
    Iterator(const ModuleDictOf* dict, size_t i) : dict_(dict), i_(i) {}
    std::pair<const std::string&, M&> operator*() const {
      return {dict_->children()[i_].first, static_cast<M&>(dict_->Get(i_))};
    }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator& other) const = default;

   private:
    const ModuleDictOf* dict_;
    size_t i_;
  };

  ModuleDictOf() = default;
  ModuleDictOf(ModuleDictOf&&) noexcept = default;

  // Null if there is none.
  M* find(const std::string& key) const {
    for (const auto& [name, module] : children()) {
      if (name == key) return static_cast<M*>(module);
    }
    return nullptr;
  }
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  // Requires: contains(key).
  M& operator[](const std::string& key) const { return *find(key); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  // Moves the module, or takes it; not null.
  template <typename T>
  requires(std::is_base_of_v<M, T>) T& insert(const std::string& key, T&& module) {
    return this->template emplace<T>(key, std::forward<T>(module));
  }
  template <typename T>
  requires(std::is_base_of_v<M, T>) T& insert(const std::string& key, std::unique_ptr<T> module) {
    T& inserted = *module;
    Take(key, std::move(module));
    return inserted;
  }

  std::string description() const override { return Concat("ModuleDict(", size(), ")"); }

 private:
  friend class Emplace<ModuleDictOf<M>, M, std::string>;
  void Own(const std::string& key, std::unique_ptr<M> module) { Take(key, std::move(module)); }
};

using ModuleDict = ModuleDictOf<Module>;

}  // namespace halftone::nn
