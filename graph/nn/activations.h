// Layers without parameters, for Sequential.
#pragma once

#include "halftone/graph/nn/functional_activation.h"
#include "halftone/graph/nn/functional_shape.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

class ReLU : public Module {
 public:
  Value forward(const Value& x) override { return relu(x, internal::CallSite()); }
  std::string description() const override { return "ReLU()"; }
};

// approximate: "none" (erf) or "tanh".
class GELU : public Module {
 public:
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Value forward(const Value& x) override { return gelu(x, approximate_, internal::CallSite()); }
  std::string description() const override { return "GELU(" + approximate_ + ")"; }

 private:
  std::string approximate_;
};

class Sigmoid : public Module {
 public:
  Value forward(const Value& x) override { return sigmoid(x, internal::CallSite()); }
  std::string description() const override { return "Sigmoid()"; }
};

class Tanh : public Module {
 public:
  Value forward(const Value& x) override { return tanh(x, internal::CallSite()); }
  std::string description() const override { return "Tanh()"; }
};

class SiLU : public Module {
 public:
  Value forward(const Value& x) override { return silu(x, internal::CallSite()); }
  std::string description() const override { return "SiLU()"; }
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
