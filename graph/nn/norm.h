// Normalisation layers, described in modules.def.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

namespace internal {

// What the batch norms have in common: everything, for each takes any number of axes.
class BatchNormLayer : public Module {
 public:
  using Options = BatchNormOptions;
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight, bias;
  Parameter running_mean, running_var;
  Parameter num_batches_tracked;  // i64[]

 protected:
  BatchNormLayer(const char* name, int64_t num_features, const BatchNormOptions& options);

 private:
  const char* name_;
  int64_t num_features_;
  BatchNormOptions options_;
};

// What the instance norms have in common.
class InstanceNormLayer : public Module {
 public:
  using Options = InstanceNormOptions;
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight, bias;

 protected:
  InstanceNormLayer(const char* name, int64_t num_features, const InstanceNormOptions& options);

 private:
  const char* name_;
  int64_t num_features_;
  InstanceNormOptions options_;
};

}  // namespace internal

class BatchNorm1d : public internal::BatchNormLayer {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormLayer("BatchNorm1d", num_features, options) {}
};

class BatchNorm2d : public internal::BatchNormLayer {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormLayer("BatchNorm2d", num_features, options) {}
};

class BatchNorm3d : public internal::BatchNormLayer {
 public:
  explicit BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormLayer("BatchNorm3d", num_features, options) {}
};

// Of one process: a batch norm.
class SyncBatchNorm : public internal::BatchNormLayer {
 public:
  explicit SyncBatchNorm(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormLayer("SyncBatchNorm", num_features, options) {}
};

// Example: nn::GroupNorm(32, 256)
class GroupNorm : public Module {
 public:
  using Options = GroupNormOptions;
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight, bias;

 private:
  int64_t num_groups_, num_channels_;
  GroupNormOptions options_;
};

class InstanceNorm1d : public internal::InstanceNormLayer {
 public:
  explicit InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormLayer("InstanceNorm1d", num_features, options) {}
};

class InstanceNorm2d : public internal::InstanceNormLayer {
 public:
  explicit InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormLayer("InstanceNorm2d", num_features, options) {}
};

class InstanceNorm3d : public internal::InstanceNormLayer {
 public:
  explicit InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormLayer("InstanceNorm3d", num_features, options) {}
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
