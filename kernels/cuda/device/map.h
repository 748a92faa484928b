// MapParams: what a kernel that computes each element of y from those of its operands is told. The
// host fills it in (map_plan.h), device code walks by it (map.cuh).
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/strided.h"

namespace halftone::cuda {

// y is dense; its positions are the index's. One thread reads an operand's element before it writes
// the result's of that position, so y may be an operand of the same type.
template <int N>
struct MapParams {
  int64_t size = 0;  // of y, above 0
  // Elements of an access: 8 or 4, which divide the last extent (or there is one axis), with every
  // operand that advances by 1 there advancing by multiples of it elsewhere, and 16 byte alignment;
  // else 1.
  int width = 1;
  DType y_dtype = DType::kF32;
  DType x_dtypes[N] = {};
  void* y = nullptr;
  const void* x[N] = {};
  StridedIndex<N> index;
  double numbers[2] = {};  // of the formula, if it has any
};

}  // namespace halftone::cuda
