// Pooling layers, described in modules.def.
#pragma once

#include <string>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

class MaxPool2d : public Module {
 public:
  using Options = MaxPool2dOptions;
  explicit MaxPool2d(Size2d kernel_size, const MaxPool2dOptions& options = {})
      : kernel_(kernel_size), options_(options) {}
  Value forward(const Value& x) override {
    return max_pool2d(x, kernel_, options_, internal::CallSite());
  }
  std::string description() const override;

 private:
  Size2d kernel_;
  MaxPool2dOptions options_;
};

class AvgPool2d : public Module {
 public:
  using Options = AvgPool2dOptions;
  explicit AvgPool2d(Size2d kernel_size, const AvgPool2dOptions& options = {})
      : kernel_(kernel_size), options_(options) {}
  Value forward(const Value& x) override {
    return avg_pool2d(x, kernel_, options_, internal::CallSite());
  }
  std::string description() const override;

 private:
  Size2d kernel_;
  AvgPool2dOptions options_;
};

}  // namespace halftone::nn
