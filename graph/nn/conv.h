// Conv2d: a convolution layer.
#pragma once

#include "halftone/graph/nn/functional_conv.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

struct Conv2dLayerOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // on both sides, zeros
  Size2d dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

// Shapes: x [N,in_channels,H,W] -> [N,out_channels,..], see conv2d; weight
// [out_channels,in_channels/groups,kh,kw], bias [out_channels]. Both start uniform in
// +-1/sqrt(in_channels/groups * kh * kw).
// Example: nn::Conv2d(1, 32, 3, {.padding = 1})
class Conv2d : public Module {
 public:
  using Options = Conv2dLayerOptions;
  Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel,
         const Conv2dLayerOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight;
  Parameter bias;  // undefined without bias

 private:
  int64_t in_channels_, out_channels_;
  Size2d kernel_;
  Conv2dOptions options_;
};

}  // namespace halftone::nn
