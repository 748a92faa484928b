// Helpers of the reference kernels for neural network ops.
#pragma once

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {

// The first `size` elements of an input in row-major order, into `to`.
inline void LoadAll(const RefCall& call, int input, int64_t size, double* to) {
  for (int64_t i = 0; i < size; ++i) to[i] = call.Load(input, i);
}
inline void StoreAll(const RefCall& call, int output, int64_t size, const double* from) {
  for (int64_t i = 0; i < size; ++i) call.Store(output, i, from[i]);
}

}  // namespace halftone::kernels
