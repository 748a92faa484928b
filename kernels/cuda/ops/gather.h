// gather and embedding on the device: rows copied by run-time indices.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace halftone::cuda {

// x [outer, rows, row_bytes] and indices [picks] (i64 if wide, else i32) to
// y [outer, picks, row_bytes]. A bad index gives zeros.
struct GatherShape {
  int64_t outer, rows, picks, row_bytes;
  bool wide;
};

cudaError_t LaunchGather(const GatherShape& shape, const void* x, const void* indices, void* y,
                         cudaStream_t stream);

}  // namespace halftone::cuda
