#include "halftone/graph/nn/functional.h"

namespace halftone::nn {

Value matmul(const Value& a, const Value& b, Loc loc) {
  return internal::Promoted("matmul", {a, b}, {}, loc);
}

Value linear(const Value& x, const Value& weight, const OptionalValue& bias, Loc loc) {
  return internal::Promoted("linear", internal::Present({x, weight, bias}), {}, loc);
}

}  // namespace halftone::nn
