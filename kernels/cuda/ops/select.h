// where: y = condition ? a : b, elements moved by their size.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/kernels/cuda/device/strided.h"

namespace halftone::cuda {

// Operands of the index: condition, a, b. y is dense; it may be a or b.
struct SelectParams {
  int64_t size = 0;      // above 0
  int element_size = 1;  // 1, 2, 4 or 8
  int width = 1;         // elements of an access, as in MapParams
  StridedIndex<3> index;
  const uint8_t* condition = nullptr;
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
};

cudaError_t LaunchSelect(const SelectParams& params, cudaStream_t stream);

}  // namespace halftone::cuda
