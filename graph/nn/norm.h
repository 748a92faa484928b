// Normalisation layers.
#pragma once

#include <vector>

#include "halftone/graph/nn/module.h"

namespace halftone::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // weight of the batch in the running statistics
  bool affine = true;     // weight (1) and bias (0) per channel
};

// Over all axes but 1. In training mode with the batch's statistics, and the running ones move (the
// variance unbiased); in evaluation mode with the running ones. Shapes: x [N,C] or [N,C,..].
class BatchNorm2d : public Module {
 public:
  using Options = BatchNormOptions;
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight, bias;
  Parameter running_mean, running_var;
  Parameter num_batches_tracked;  // i64[]: batches seen in training mode

 private:
  int64_t num_features_;
  BatchNormOptions options_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool affine = true;  // weight (1) and bias (0) of shape normalized_shape
};

// Over the last axes of x, which must be `normalized_shape`.
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

}  // namespace halftone::nn
