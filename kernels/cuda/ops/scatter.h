// gather_grad, embedding_grad and embedding_grad_rows on the device: rows added where run-time
// indices say.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// dy [outer, picks, inner] and indices [picks] (i64 if wide, else i32) to dx [outer, rows, inner]:
// each row of dx is the sum, in order of position, of the rows of dy whose index names it. Those
// with a bad index or `ignored` add nowhere.
struct ScatterShape {
  int64_t outer, rows, picks, inner;
  int64_t ignored;  // -1: none
  bool wide;
};

// Whether a row and a position fit the 64 bits of a sort key.
bool CanScatter(const ScatterShape& shape);
size_t ScatterWorkspace(const ScatterShape& shape);
// dx has dy's dtype or, for 16-bit dy, f32. Sums in f32 (f64 for f64), added to `base`, of dx's type and
// perhaps in its place, if that is not null.
cudaError_t LaunchScatter(const ScatterShape& shape, DType dy_dtype, DType dx_dtype, const void* dy,
                          const void* indices, const void* base, void* workspace, void* dx,
                          cudaStream_t stream);

// The rows of dx [rows, inner] that an index names, in ascending order: drows [picks, inner] and
// their ids [picks], 0 and -1 behind the last. Requires: outer is 1.
size_t ScatterRowsWorkspace(const ScatterShape& shape);
cudaError_t LaunchScatterRows(const ScatterShape& shape, DType dy_dtype, DType drows_dtype,
                              const void* dy, const void* indices, void* workspace, void* drows,
                              int64_t* ids, cudaStream_t stream);

}  // namespace halftone::cuda
