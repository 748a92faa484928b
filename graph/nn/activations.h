// Layers without parameters, for Sequential.
#pragma once

#include "halftone/graph/nn/functional_activation.h"
#include "halftone/graph/nn/functional_shape.h"
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

// approximate: "none" (erf) or "tanh".
class GELU : public Module {
 public:
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Value forward(const Value& x) override { return gelu(x, approximate_, internal::CallSite()); }
  std::string description() const override { return "GELU(" + approximate_ + ")"; }

 private:
  std::string approximate_;
};

// Joins the axes after the first into one, see nn::flatten.
class Flatten : public Module {
 public:
  explicit Flatten(int64_t first = 1, int64_t last = -1) : first_(first), last_(last) {}
  Value forward(const Value& x) override { return flatten(x, first_, last_, internal::CallSite()); }
  std::string description() const override { return "Flatten()"; }

 private:
  int64_t first_, last_;
};

}  // namespace halftone::nn
