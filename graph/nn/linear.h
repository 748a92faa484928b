// Linear: a fully connected layer, described in modules.def.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

// Example: nn::Linear(256, 128, {.bias = false})
class Linear : public Module {
 public:
  using Options = LinearOptions;
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});
  // Linear(256, 128, false). A template, so that {} means the options.
  template <std::same_as<bool> Bool>
  Linear(int64_t in_features, int64_t out_features, Bool bias)
      : Linear(in_features, out_features, LinearOptions{bias}) {}
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight;
  Parameter bias;  // undefined without bias

 private:
  int64_t in_features_, out_features_;
};

}  // namespace halftone::nn
