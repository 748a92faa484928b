// sort on the device: the first elements of an order along an axis, and their places.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

// x [outer, size, inner] to values and places [outer, first, inner]. Equal elements keep their
// order; NaN counts as largest.
struct SortParams {
  int64_t outer = 1, size = 0, first = 0;
  WideDivisor inner, by_size, by_first;
  bool descending = false;
  const void* x = nullptr;
  void* values = nullptr;
  int64_t* places = nullptr;

  int64_t lines() const { return outer * inner.divisor; }
};

size_t SortWorkspace(const SortParams& params, DType dtype);
// Requires: results; lines of fewer than 2^32 elements where these have less than 8 bytes.
cudaError_t LaunchSort(const SortParams& params, DType dtype, void* workspace, cudaStream_t stream);

}  // namespace halftone::cuda
