// ModuleContainer: what ModuleList, ModuleDict and Sequential share. They own their modules.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/nn/module.h"

namespace halftone::nn {

// Has no ops of its own. Fill it before adding it to a graph. A reference to a module holds as long
// as the container, whatever is added later. Mistakes are kept in status(), as in any module.
class ModuleContainer : public Module {
 public:
  ~ModuleContainer() override;
  size_t size() const { return modules_.size(); }
  bool empty() const { return modules_.empty(); }
  bool is_container() const override { return true; }

 protected:
  ModuleContainer() = default;
  // Modules stay where they are, so a container can be handed to another one.
  ModuleContainer(ModuleContainer&& other) noexcept;

  // Requires: i < size().
  Module& Get(size_t i) const { return *modules_[i]; }
  // Takes the module. One that is refused is kept all the same, so that the reference holds.
  // Requires: module != nullptr.
  Module& Take(const std::string& name, std::unique_ptr<Module> module);
  // The same where names are indices; modules from `index` on move up. Errors: index > size().
  Module& TakeAt(size_t index, std::unique_ptr<Module> module);

 private:
  void GiveUpOwned(std::vector<std::unique_ptr<Module>>& owner) override;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::unique_ptr<Module>> refused_;
};

// Gives Self an emplace(), for modules of type M or derived from it. A Key comes before the
// arguments where modules have one. Self has Own(key..., std::unique_ptr<Module>).
template <typename Self, typename M, typename... Key>
class Emplace {
 public:
  // Adds T(args...), and gives it.
  template <typename T = M, typename... Args>
  T& emplace(Key... key, Args&&... args) {
    return Make<T>(std::move(key)..., std::forward<Args>(args)...);
  }
  // The same where the last argument is the module's options, for templates cannot forward braces.
  // Example: emplace<nn::Conv2d>(3, 8, 3, {.padding = 1})
  template <typename T = M, typename A>
  T& emplace(Key... key, A&& a, const typename T::Options& options) {
    return Make<T>(std::move(key)..., std::forward<A>(a), options);
  }
  template <typename T = M, typename A, typename B>
  T& emplace(Key... key, A&& a, B&& b, const typename T::Options& options) {
    return Make<T>(std::move(key)..., std::forward<A>(a), std::forward<B>(b), options);
  }
  template <typename T = M, typename A, typename B, typename C>
  T& emplace(Key... key, A&& a, B&& b, C&& c, const typename T::Options& options) {
    return Make<T>(std::move(key)..., std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                   options);
  }
  // Example: emplace<nn::LayerNorm>({768})
  template <typename T = M>
  T& emplace(Key... key, std::initializer_list<int64_t> shape,
             const typename T::Options& options = {}) {
    return Make<T>(std::move(key)..., std::vector<int64_t>(shape), options);
  }

 private:
  template <typename T, typename... Args>
  T& Make(Key... key, Args&&... args) {
    auto module = std::make_unique<T>(std::forward<Args>(args)...);
    T& made = *module;
    static_cast<Self*>(this)->Own(std::move(key)..., std::move(module));
    return made;
  }
};

}  // namespace halftone::nn
