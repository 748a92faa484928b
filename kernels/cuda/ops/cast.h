// Conversion between any two dtypes, by the rules of StoreDouble and StoreInt (core/dtype.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// `size` elements, above 0. The arrays may be the same where the dtypes have one size.
cudaError_t LaunchCast(DType from_dtype, DType to_dtype, int64_t size, const void* from, void* to,
                       cudaStream_t stream);

}  // namespace halftone::cuda
