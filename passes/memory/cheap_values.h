// What is made anew though nobody asks: cheap values, where a step holds many bytes for its
// backward pass.
#pragma once

#include <cstdint>

#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"
#include "halftone/passes/memory/recomputation.h"

namespace halftone::passes {

// What is cheap, and what it must save. Effort is that of budget_search.h.
struct CheapLimits {
  // For a byte that is free at the peak. A cast or transpose takes 32 to 48, gelu 56 in f32 and 80
  // in 16 bit, a product of f32 matrices over 128 terms about 100.
  double most_effort_per_byte = 96;
  // Share of the step's effort that all repetitions together may add.
  double most_of_step = 0.0125;
  // A step of a small model fits anyway, and a few per cent of an arena are worth no time:
  // transformers save 16 to 29 of them, ResNet-50 and a detector on it, where halves of batch norms
  // and small convolutions could go, 6 to 15.
  int64_t least_bytes = int64_t{32} << 20;
  double least_of_arena = 0.14;
};

struct CheapValues {
  Repeats repeats;  // empty: it does not pay
  // Of the memory plan, without and with them; 0 where too little is cheap to ask for a plan.
  int64_t arena_before = 0;
  int64_t arena_after = 0;
};

// Of values whose repetition costs little more than moving them (activation functions, norms,
// casts, transposes; no products, but convolutions of few terms) as many as lower the peak within
// the limits.
// Requires: a sorted graph that is final but for the launches of updates.
absl::StatusOr<CheapValues> FindCheapValues(const ir::Graph& graph, const ir::Target& target,
                                            const CheapLimits& limits = {});

}  // namespace halftone::passes
