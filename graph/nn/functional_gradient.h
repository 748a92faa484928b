// Gradients as values, for inspection and for losses that use them.
#pragma once

#include <vector>

#include "halftone/graph/nn/op.h"
#include "halftone/graph/nn/parameter.h"

namespace halftone::nn {

// The true d loss / d wrt[i]; zeros where loss does not depend on it. Where the graph has a grad
// scaler the sweep is scaled by it, so that small gradients survive 16 bit, and the results are
// unscaled in f32; they are then not finite where a scaled gradient overflows, as in the step that
// the scaler skips.
// Shapes: loss is a scalar; results have the shape of wrt[i]. Dtypes: that of wrt[i], f32 for 16
// bit.
Values gradients(const Value& loss, const std::vector<Value>& wrt, Loc loc = Loc::current());

// x as a constant: no gradient flows back through it. Nothing is copied.
inline Value detach(const Value& x, Loc loc = Loc::current()) {
  return internal::Op("detach", {x}, {}, loc);
}

}  // namespace halftone::nn
