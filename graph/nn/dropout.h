// Dropout: zeros a share of the activations while training; described in modules.def.
#pragma once

#include <string>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

class Dropout : public Module {
 public:
  using Options = DropoutOptions;
  explicit Dropout(const DropoutOptions& options = {}) : p_(options.p) {}
  explicit Dropout(double p) : p_(p) {}
  Value forward(const Value& x) override { return dropout(x, p_, internal::CallSite()); }
  std::string description() const override;

 private:
  double p_;
};

}  // namespace halftone::nn
