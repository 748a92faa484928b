// Between the SIMD and the host half of simd_gru.cc.
#pragma once

#include <cstdint>

#include "halftone/kernels/cpu/simd/recurrence_fns.h"

namespace halftone::kernels {

// One step for all rows of the batch: s = h w^T + b, gates from it and x, and the new state.
struct GruStep {
  const StripShape* weights;  // three groups of H columns
  const float* h;             // [B,H] before the step, as w multiplies it
  const float* b;             // [3H], or null
  const void* x;              // [T: B,3H]
  void* gates;                // [T: B,3H]; may be x
  void* share;                // [T: B,H]: s of the third gate
  const float* state;         // [B,H] before the step
  float* new_state;           // may be state; null where T is f32, in which y has it
  void* y;                    // [T: B,H]
  float* y_wide;              // y as rounded to T, or null
};
using GruStepFn = void (*)(const GruStep& step, const StepTile& tile);

// One step of the gradient: that of h is a times the strips, plus dh, plus what the state keeps.
struct GruGradStep {
  const StripShape* weights;  // H columns
  const float* a;             // null: 0
  const void *gates, *share, *h_before, *dh;
  float* kept;     // [B,H]: in from the step after, out to the step before
  void* dx;        // [T: B,3H]; may be gates
  void* ds;        // [T: B,3H]
  float* ds_wide;  // ds as rounded to T, or null
};
using GruGradStepFn = void (*)(const GruGradStep& step, const StepTile& tile);

struct GruFns {
  GruStepFn step;
  GruGradStepFn grad_step;
  ProductStepFn product;
  PackStripFn pack;
  int64_t lanes, wide_strip;
};

}  // namespace halftone::kernels
