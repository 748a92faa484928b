// Dropout: zeros a share of the activations while training.
#pragma once

#include "halftone/graph/nn/functional_random.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

// See nn::dropout. Two calls of one module draw different masks.
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Value forward(const Value& x) override { return dropout(x, p_, internal::CallSite()); }
  std::string description() const override;

 private:
  double p_;
};

}  // namespace halftone::nn
