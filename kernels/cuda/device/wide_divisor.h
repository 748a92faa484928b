// Division of positions by a number known at launch: a multiplication and a shift on the device,
// where a 64-bit division is a call of some 100 instructions that keeps registers in memory.
// Source: Granlund, Montgomery, "Division by invariant integers using multiplication", PLDI 1994,
// figure 4.1.
#pragma once

#include <cstdint>

namespace halftone::cuda {

// Of 0 <= n < 2^63 by divisor >= 1: (high half of n * factor + n) >> shift.
struct WideDivisor {
  uint64_t factor = 1;
  int32_t shift = 0;
  int64_t divisor = 1;
};

WideDivisor WideDivisorOf(int64_t divisor);

}  // namespace halftone::cuda
