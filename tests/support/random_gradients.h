// Random graphs with a backward pass.
#pragma once

#include <cstdint>
#include <memory>

#include "halftone/graph/ir/graph.h"

namespace halftone::testing {

// A random graph (random_graph.h) with the gradient of the sum of the means of its f32 outputs
// in every f32 input and variable, as outputs; null if there is none.
std::unique_ptr<ir::Graph> RandomGradients(uint64_t seed);

}  // namespace halftone::testing
