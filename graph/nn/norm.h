// Normalisation layers, described in modules.def.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

class BatchNorm2d : public Module {
 public:
  using Options = BatchNormOptions;
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight, bias;
  Parameter running_mean, running_var;
  Parameter num_batches_tracked;  // i64[]

 private:
  int64_t num_features_;
  BatchNormOptions options_;
};

// Example: nn::LayerNorm({768})
class LayerNorm : public Module {
 public:
  using Options = LayerNormOptions;
  explicit LayerNorm(const std::vector<int64_t>& normalized_shape,
                     const LayerNormOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight, bias;

 private:
  Shape normalized_shape_;
  LayerNormOptions options_;
};

// Example: nn::RMSNorm({768}, {.eps = 1e-6})
class RMSNorm : public Module {
 public:
  using Options = RMSNormOptions;
  explicit RMSNorm(const std::vector<int64_t>& normalized_shape,
                   const RMSNormOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight;

 private:
  Shape normalized_shape_;
  RMSNormOptions options_;
};

}  // namespace halftone::nn
