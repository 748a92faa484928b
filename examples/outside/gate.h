// A module of one's own with several inputs: y = g a + (1 - g) b, where the gate g = sigmoid(w a + c).
#pragma once

#include "halftone/halftone.h"

namespace outside {

class Gate : public halftone::nn::Module {
 public:
  explicit Gate(int64_t features);
  // a and b: [..., features].
  halftone::nn::Value Mix(const halftone::nn::Value& a, const halftone::nn::Value& b);
  halftone::nn::Linear& linear() { return linear_; }

 private:
  halftone::nn::Linear linear_;
};

}  // namespace outside
