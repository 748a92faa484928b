// How kernels find operands that are broadcast, transposed or laid out otherwise than the result.
// The host collapses the axes once (strided_plan.h); device code turns positions into offsets
// (strided.cuh).
#pragma once

#include <cstdint>

namespace halftone::cuda {

inline constexpr int kMaxAxes = 8;

// Division of numbers below 2^31 by one divisor: quotient = (high half of n * factor + n) >> shift.
// Source: Granlund, Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
struct Divisor {
  uint32_t divisor = 1, factor = 0, shift = 0;
};

// Positions count through the axes, the last one fastest; operand k advances by strides[.][k]
// elements along an axis.
template <int N>
struct StridedIndex {
  int axes = 0;
  bool narrow = true;  // every position and offset is below 2^31, and `divisors` are set
  int64_t extents[kMaxAxes] = {};
  int64_t strides[kMaxAxes][N] = {};
  Divisor divisors[kMaxAxes] = {};
};

}  // namespace halftone::cuda
