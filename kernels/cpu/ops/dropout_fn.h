// Between the SIMD and the host half of simd_dropout.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

struct DropoutStep {
  uint64_t seed = 0, run = 0;
  int32_t threshold = 0;  // kept: the upper 24 bits of the word are at least this
  float scale = 1;
};
// y[i] = kept ? x[i] * scale : 0 for `n` elements, of which the first is element 4 * `group` of the
// tensor.
using DropoutFn = void (*)(const DropoutStep& step, const void* x, void* y, uint64_t group,
                           int64_t n);

}  // namespace halftone::kernels
