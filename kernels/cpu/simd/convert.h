// Bulk conversion between f32 and the 16-bit types with the rounding of core/dtype.h, in SIMD.
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::kernels {

// Converts `n` elements; any pair of f32, f16, bf16. The ranges may be equal only if the dtypes
// are. One rounding, to nearest even; inf, NaN and subnormals are kept. Allocates nothing.
// Threaded.
void Convert(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t n);

// The same on one thread, for kernels that convert what they just wrote: a loop for a pair of dtypes.
using ConvertFn = void (*)(const void* from, void* to, int64_t n);
ConvertFn ConvertLoop(DType from, DType to);

}  // namespace halftone::kernels
