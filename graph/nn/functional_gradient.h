// Gradients as values, for inspection and for losses that use them.
#pragma once

#include <vector>

#include "halftone/graph/nn/op.h"
#include "halftone/graph/nn/parameter.h"

namespace halftone::nn {

// d loss / d wrt[i], unscaled, with the type of wrt[i]; zeros where loss does not depend on it.
// Shapes: loss is a scalar.
inline Values gradients(const Value& loss, const std::vector<Value>& wrt,
                        Loc loc = Loc::current()) {
  std::vector<Value> inputs = {loss};
  inputs.insert(inputs.end(), wrt.begin(), wrt.end());
  return internal::Ops("gradient", inputs, {}, loc);
}

}  // namespace halftone::nn
