// ModuleList: modules in order, named "0", "1", ...
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "halftone/graph/nn/module_container.h"

namespace halftone::nn {

// Owns its modules, which are M or derived from it. Has no forward(): a module around it calls what
// it holds, with any function of M.
//
// Example:
//   for (int i = 0; i < 12; ++i) blocks_.emplace(768);  // nn::ModuleListOf<Block> blocks_;
//   register_module("blocks", blocks_);
//   ...
//   for (Block& block : blocks_) x = block.Attend(x, mask);
template <typename M>
class ModuleListOf : public ModuleContainer, public Emplace<ModuleListOf<M>, M> {
 public:
  class Iterator {
   public:
    Iterator(const ModuleListOf* list, size_t i) : list_(list), i_(i) {}
    M& operator*() const { return (*list_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator& other) const = default;

   private:
    const ModuleListOf* list_;
    size_t i_;
  };

  ModuleListOf() = default;
  // Example: nn::ModuleList layers(nn::Linear(8, 16), nn::ReLU());
  template <typename... Modules>
  requires(sizeof...(Modules) > 0 && (std::is_base_of_v<M, Modules> && ...) &&
           !(sizeof...(Modules) == 1 && (std::is_base_of_v<ModuleListOf, Modules> &&
                                         ...))) explicit ModuleListOf(Modules&&... modules) {
    (append(std::forward<Modules>(modules)), ...);
  }
  ModuleListOf(ModuleListOf&&) noexcept = default;

  // Requires: i < size().
  M& operator[](size_t i) const { return static_cast<M&>(Get(i)); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  // Moves the module, or takes it; not null.
  template <typename T>
  requires(std::is_base_of_v<M, T>) T& append(T&& module) {
    return this->template emplace<T>(std::forward<T>(module));
  }
  template <typename T>
  requires(std::is_base_of_v<M, T>) T& append(std::unique_ptr<T> module) {
    return insert(size(), std::move(module));
  }
  // Before `index`, which may be size(). The names of those behind it change.
  template <typename T>
  requires(std::is_base_of_v<M, T>) T& insert(size_t index, std::unique_ptr<T> module) {
    T& inserted = *module;
    TakeAt(index, std::move(module));
    return inserted;
  }

  std::string description() const override { return Concat("ModuleList(", size(), ")"); }

 private:
  friend class Emplace<ModuleListOf<M>, M>;
  void Own(std::unique_ptr<M> module) { TakeAt(size(), std::move(module)); }
};

using ModuleList = ModuleListOf<Module>;

}  // namespace halftone::nn
