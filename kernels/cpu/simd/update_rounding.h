// Blocks of bf16 arrays of an update: widened into f32, and stored as kernels/update_rounding.h
// says, with the same bits.
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::kernels {

// The random bits of one result of an update.
struct RoundingStream {
  uint64_t seed, step;
  int result;
};

struct UpdateRoundingFns {
  void (*widen)(const BF16* x, float* y, int64_t n);
  // y[i] = Compensated(param[i], compensation[i]).
  void (*compensate)(const BF16* param, const BF16* compensation, float* y, int64_t n);
  // `first` is the number of x[0] in its tensor, a multiple of 4 or not.
  void (*round_stochastically)(const RoundingStream& stream, int64_t first, const float* x, BF16* y,
                               int64_t n);
  // param to nearest, compensation what it lost.
  void (*split)(const float* x, BF16* param, BF16* compensation, int64_t n);
};
// Requires: InitSimdDispatch.
UpdateRoundingFns FindUpdateRounding();

}  // namespace halftone::kernels
