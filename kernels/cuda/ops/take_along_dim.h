// take_along_dim on the device: an index for each element of the result.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

// Picks [outer, picks, inner] of rows [outer, rows, inner]; indices are i64 if wide, else i32.
struct TakeShape {
  int64_t outer = 1, rows = 0, picks = 0, inner = 1;
  bool wide = true;
  WideDivisor by_inner, by_block;  // by `inner` and by `picks` * `inner`

  int64_t size() const { return outer * picks * inner; }
};

// y[pick] = x[its row], elements of `element_size` bytes. A bad index gives zeros.
cudaError_t LaunchTake(const TakeShape& shape, int element_size, const void* x, const void* indices,
                       void* y, cudaStream_t stream);
// flat[pick] = number of its row among all; -1 for a bad index.
cudaError_t LaunchFlatRows(const TakeShape& shape, const void* indices, int64_t* flat,
                           cudaStream_t stream);

}  // namespace halftone::cuda
