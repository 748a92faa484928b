// Activations that have attributes; the others are among the functions of
// functional_elementwise.h. Shapes: the result has the shape and dtype of x.
#pragma once

#include <string>

#include "halftone/graph/nn/functional_elementwise.h"

namespace halftone::nn {

// x * Phi(x). approximate: "none" (erf) or "tanh".
inline Value gelu(const Value& x, const std::string& approximate = "none",
                  Loc loc = Loc::current()) {
  return internal::Op("gelu", {x}, {{"approximate", approximate}}, loc);
}
// exp(x - max) / sum over `axis`. Errors: axis out of range.
inline Value softmax(const Value& x, int64_t axis, Loc loc = Loc::current()) {
  return internal::Op("softmax", {x}, {{"axis", internal::Axis("softmax", x, axis, loc)}}, loc);
}
// log(softmax(x)) without the overflow. Errors: axis out of range.
inline Value log_softmax(const Value& x, int64_t axis, Loc loc = Loc::current()) {
  return internal::Op("log_softmax", {x}, {{"axis", internal::Axis("log_softmax", x, axis, loc)}},
                      loc);
}

}  // namespace halftone::nn
