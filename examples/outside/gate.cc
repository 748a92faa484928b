#include "gate.h"

namespace nn = halftone::nn;

namespace outside {

Gate::Gate(int64_t features) : linear_(features, features) { register_module("linear", linear_); }

nn::Value Gate::Mix(const nn::Value& a, const nn::Value& b) {
  // The nodes made from here on are this module's: its name is in their path, and they obey its
  // mode and its wish for precision. forward() would have it from the call of the module.
  const nn::ModuleScope scope(*this);
  const nn::Value g = nn::sigmoid(linear_(a));
  return g * a + (1 - g) * b;
}

}  // namespace outside
