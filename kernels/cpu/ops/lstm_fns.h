// Between the SIMD and the host half of simd_lstm.cc.
#pragma once

#include <cstdint>

#include "halftone/kernels/cpu/simd/recurrence_fns.h"

namespace halftone::kernels {

// One step for all rows of the batch: gates from x + h w^T, cells, and m = o tanh(c), which is h unless
// it is projected.
struct LstmStep {
  const StripShape* weights;  // four groups of H columns
  const float* h;             // [B,P] before the step
  const void* x;              // [T: B,4H]
  void* gates;                // [T: B,4H]; may be x
  const float* c_before;      // [B,H]
  float* c;
  void* m;        // [T: B,H], or null
  float* m_wide;  // m as rounded to T, or null
};
using LstmStepFn = void (*)(const LstmStep& step, const StepTile& tile);

// One step of the gradient: that of m is a times the strips, plus dh where h is not projected.
struct LstmGradStep {
  const StripShape* weights;  // H columns
  const float* a;             // null: 0
  const void* dh;             // [T: B,H], or null
  void* dh_sum;               // dh with a times the strips; where dh is. May be dh
  const void* gates;          // [T: B,4H]
  const float *c, *c_before;  // [B,H]
  float* dc;                  // [B,H]: in from the step after, out to the step before
  void* dx;                   // [T: B,4H]; may be gates
  float* dx_wide;             // dx as rounded to T, or null
};
using LstmGradStepFn = void (*)(const LstmGradStep& step, const StepTile& tile);

struct LstmFns {
  LstmStepFn step;
  LstmGradStepFn grad_step;
  ProductStepFn product;
  PackStripFn pack;
  int64_t lanes, wide_strip;
};

}  // namespace halftone::kernels
