// What the products of a library need done to their operands first: filters in another order,
// 16-bit values as f32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// Filters [outer, a, b] stored as [outer, b, a]: [O,C/groups,kh*kw] to channels-last or back.
// `element_bytes`: 2 or 4.
cudaError_t LaunchSwapFilterAxes(const void* in, int64_t outer, int64_t a, int64_t b,
                                 int element_bytes, void* out, cudaStream_t stream);

// f16 or bf16 to f32.
cudaError_t LaunchWiden(const void* in, DType from, int64_t count, float* out, cudaStream_t stream);

}  // namespace halftone::cuda
