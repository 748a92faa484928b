// Layers without parameters, for Sequential. Those with options are described in modules.def.
#pragma once

#include <string>
#include <utility>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

// A layer for every activation of graph/ops/support/elementwise.def, called as in PyTorch: ReLU
// applies nn::relu.
#define HT_ACTIVATION(op, Formula, Layer, ...)                                     \
  class Layer : public Module {                                                    \
   public:                                                                         \
    Value forward(const Value& x) override { return op(x, internal::CallSite()); } \
    std::string description() const override { return #Layer "()"; }               \
  };
#include "halftone/graph/ops/support/elementwise.def"

class GELU : public Module {
 public:
  using Options = GELUOptions;
  explicit GELU(GELUOptions options = {}) : options_(std::move(options)) {}
  explicit GELU(std::string approximate) : options_{std::move(approximate)} {}
  Value forward(const Value& x) override {
    return gelu(x, options_.approximate, internal::CallSite());
  }
  std::string description() const override { return "GELU(" + options_.approximate + ")"; }

 private:
  GELUOptions options_;
};

class Flatten : public Module {
 public:
  using Options = FlattenOptions;
  explicit Flatten(const FlattenOptions& options = {}) : options_(options) {}
  explicit Flatten(int64_t first, int64_t last = FlattenOptions{}.last) : options_{first, last} {}
  Value forward(const Value& x) override {
    return flatten(x, options_.first, options_.last, internal::CallSite());
  }
  std::string description() const override { return "Flatten()"; }

 private:
  FlattenOptions options_;
};

}  // namespace halftone::nn
