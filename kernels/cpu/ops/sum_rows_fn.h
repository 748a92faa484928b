// Between the SIMD and the host half of simd_scatter.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// sums[j] = base[j] + sum over k < count of x[picks[k] * inner + j], j < inner; `base`, of the dtype of the
// sums and perhaps in their place, may be null: none. Requires: count > 0.
using SumRowsFn = void (*)(const void* x, const int64_t* picks, int64_t count, int64_t inner,
                           const void* base, void* sums);

}  // namespace halftone::kernels
