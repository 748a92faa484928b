// Small random graphs that are valid by construction: for the round trip of the text and proto
// forms, and for passes (same results before and after).
#pragma once

#include <cstdint>
#include <memory>

#include "halftone/graph/ir/graph.h"

namespace halftone::testing {

struct RandomGraphOptions {
  int steps = 24;     // ops added; some add a constant too
  bool casts = true;  // values in f64, bf16 and f16 as well
  bool state = true;  // variables, read and committed
  // exp, log, sqrt, divisions and differences from 1 too: what enlarges rounding.
  bool functions = false;
};

// Elementwise ops with broadcasting, comparisons, reductions, matmul, softmax and changes of shape
// over tensors of rank 0 to 4 with at most 4,096 elements. Some nodes are repeated and some are
// dead, so that CSE and DCE have work. For inputs and variables in [-1, 1] every value stays below
// about 1e4 in magnitude: no run overflows f16. The same seed gives the same graph everywhere.
std::unique_ptr<ir::Graph> RandomGraph(uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace halftone::testing
