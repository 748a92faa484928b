// Conv2d: a convolution layer, described in modules.def.
#pragma once

#include <string>

#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

// Example: nn::Conv2d(1, 32, 3, {.padding = 1})
class Conv2d : public Module {
 public:
  using Options = Conv2dLayerOptions;
  Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
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
