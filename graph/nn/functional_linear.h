// Matrix products. They accumulate in f32 for 16-bit operands; mixed dtypes meet in their
// promotion.
#pragma once

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// Shapes: a [..,m,k], b [..,k,n] -> [..,m,n]; leading axes broadcast.
// Errors: "matmul: inner sizes differ: f32[8,16] x f32[4,10]; expected [16, n]", rank under 2.
inline Value matmul(const Value& a, const Value& b, Loc loc = Loc::current()) {
  return internal::Promoted("matmul", {a, b}, {}, loc);
}
// x times the transpose of `weight`, plus `bias`. Shapes: x [..,in], weight [out,in], bias [out] ->
// [..,out]. Errors: sizes that do not fit.
inline Value linear(const Value& x, const Value& weight, Loc loc = Loc::current()) {
  return internal::Promoted("linear", {x, weight}, {}, loc);
}
inline Value linear(const Value& x, const Value& weight, const Value& bias,
                    Loc loc = Loc::current()) {
  return internal::Promoted("linear", {x, weight, bias}, {}, loc);
}

}  // namespace halftone::nn
