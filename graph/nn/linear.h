// Linear: a fully connected layer.
#pragma once

#include "halftone/graph/nn/module.h"

namespace halftone::nn {

// y = x * weight^T + bias. Shapes: x [..,in_features] -> [..,out_features]; weight
// [out_features,in_features], bias [out_features]. Both start uniform in +-1/sqrt(in_features).
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool with_bias = true);
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight;
  Parameter bias;  // undefined without bias

 private:
  int64_t in_features_, out_features_;
};

}  // namespace halftone::nn
