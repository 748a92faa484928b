// Pooling layers, described in modules.def.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

class MaxPool1d : public Module {
 public:
  using Options = MaxPool1dOptions;
  explicit MaxPool1d(int64_t kernel_size, const MaxPool1dOptions& options = {})
      : kernel_(kernel_size), options_(options) {}
  Value forward(const Value& x) override {
    return max_pool1d(x, kernel_, options_, internal::CallSite());
  }
  std::string description() const override;

 private:
  int64_t kernel_;
  MaxPool1dOptions options_;
};

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

class AvgPool1d : public Module {
 public:
  using Options = AvgPool1dOptions;
  explicit AvgPool1d(int64_t kernel_size, const AvgPool1dOptions& options = {})
      : kernel_(kernel_size), options_(options) {}
  Value forward(const Value& x) override {
    return avg_pool1d(x, kernel_, options_, internal::CallSite());
  }
  std::string description() const override;

 private:
  int64_t kernel_;
  AvgPool1dOptions options_;
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

class AdaptiveAvgPool1d : public Module {
 public:
  explicit AdaptiveAvgPool1d(int64_t output_size) : size_(output_size) {}
  Value forward(const Value& x) override {
    return adaptive_avg_pool1d(x, size_, internal::CallSite());
  }
  std::string description() const override;

 private:
  int64_t size_;
};

// Example: nn::AdaptiveAvgPool2d(1), over whole images
class AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2d output_size) : size_(output_size) {}
  Value forward(const Value& x) override {
    return adaptive_avg_pool2d(x, size_, internal::CallSite());
  }
  std::string description() const override;

 private:
  Size2d size_;
};

class AdaptiveMaxPool1d : public Module {
 public:
  explicit AdaptiveMaxPool1d(int64_t output_size) : size_(output_size) {}
  Value forward(const Value& x) override {
    return adaptive_max_pool1d(x, size_, internal::CallSite());
  }
  std::string description() const override;

 private:
  int64_t size_;
};

class AdaptiveMaxPool2d : public Module {
 public:
  explicit AdaptiveMaxPool2d(Size2d output_size) : size_(output_size) {}
  Value forward(const Value& x) override {
    return adaptive_max_pool2d(x, size_, internal::CallSite());
  }
  std::string description() const override;

 private:
  Size2d size_;
};

}  // namespace halftone::nn
