// A plain tensor seen as [outer, size, inner] around one axis.
#pragma once

#include "halftone/core/shape.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::kernels {

struct AxisSplit {
  // `axis` counts from the end if negative.
  AxisSplit(const Shape& shape, int64_t axis) {
    const int at = ops::CheckedAxis(axis, shape.rank());
    for (int i = 0; i < shape.rank(); ++i) (i < at ? outer : i == at ? size : inner) *= shape[i];
  }
  // Element `k` along the axis in line `line`.
  int64_t operator()(int64_t line, int64_t k) const {
    return (line / inner * size + k) * inner + line % inner;
  }
  int64_t lines() const { return outer * inner; }
  int64_t elements() const { return outer * size * inner; }

  int64_t outer = 1, size = 1, inner = 1;
};

}  // namespace halftone::kernels
