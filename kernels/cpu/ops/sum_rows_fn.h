// Between the SIMD and the host half of simd_scatter.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// sums[j] = sum over k < count of x[picks[k] * inner + j], j < inner. Requires: count > 0.
using SumRowsFn = void (*)(const void* x, const int64_t* picks, int64_t count, int64_t inner,
                           void* sums);

}  // namespace halftone::kernels
