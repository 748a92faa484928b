// Random steps (forward ops, convolutions, commits) with work for every pass: for properties that
// must hold for every graph.
#pragma once

#include <memory>

#include "halftone/graph/ir/graph.h"

namespace halftone::testing {

struct RandomStepOptions {
  int steps = 30;            // ops tried; constants and variables come on top
  bool low_dtypes = true;    // casts to and from f16 and bf16, else all floats are f32
  bool convolutions = true;  // rank-4 values, convolutions and pooling
  bool commits = true;       // variables that are written
};

// A verified graph; the same for the same seed and options. Ops repeat on purpose, constants are
// often 0, -0 and 1, and some values are never read, so that canonicalisation has work. No markers,
// no ops that fault.
std::unique_ptr<ir::Graph> RandomStep(uint64_t seed, const RandomStepOptions& options = {});

}  // namespace halftone::testing
