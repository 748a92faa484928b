// Helpers of the reference kernels for neural network ops.
#pragma once

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {

// The first `size` elements of an input in row-major order, into `to`.
inline void LoadAll(const RefCall& call, int input, int64_t size, double* to) {
  for (int64_t i = 0; i < size; ++i) to[i] = call.Load(input, i);
}
inline void StoreAll(const RefCall& call, int output, int64_t size, const double* from) {
  for (int64_t i = 0; i < size; ++i) call.Store(output, i, from[i]);
}

// A tensor seen as [outer, size, inner] around one axis.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
  AxisSplit(const Shape& shape, int axis) : size(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  // Element `k` along the axis in line `line`, of outer * inner lines.
  int64_t operator()(int64_t line, int64_t k) const {
    return (line / inner * size + k) * inner + line % inner;
  }
  int64_t lines() const { return outer * inner; }
};

}  // namespace halftone::kernels
