// Linear: a fully connected layer.
#pragma once

#include <concepts>
#include <cstdint>

#include "halftone/graph/nn/module.h"

namespace halftone::nn {

struct LinearOptions {
  bool bias = true;
};

// y = x * weight^T + bias. Shapes: x [..,in_features] -> [..,out_features]; weight
// [out_features,in_features], bias [out_features]. Both start uniform in +-1/sqrt(in_features).
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
