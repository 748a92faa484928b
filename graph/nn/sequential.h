// Sequential: modules one after another, named "0", "1", ...
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "halftone/graph/nn/module.h"

namespace halftone::nn {

// Owns its modules.
// Example: nn::Sequential trunk(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 2));
class Sequential : public Module {
 public:
  Sequential() = default;
  template <typename... Modules>
  requires(sizeof...(Modules) > 0 &&
           (std::is_base_of_v<Module, Modules> && ...)) explicit Sequential(Modules&&... modules) {
    (emplace<Modules>(std::forward<Modules>(modules)), ...);
  }

  // Appends M(args...), and gives it. Fill a Sequential before adding it to a graph.
  template <typename M, typename... Args>
  M& emplace(Args&&... args) {
    auto owned = std::make_unique<M>(std::forward<Args>(args)...);
    M& module = *owned;
    Append(std::move(owned));
    return module;
  }

  size_t size() const { return modules_.size(); }
  // Requires: i < size().
  Module& operator[](size_t i) { return *modules_[i]; }

  Value forward(const Value& x) override;
  std::string description() const override;

 private:
  void Append(std::unique_ptr<Module> module);
  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace halftone::nn
