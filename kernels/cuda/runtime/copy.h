// Elements moved between two strided views of the same extents, by their size alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halftone/kernels/cuda/device/strided.h"

namespace halftone::cuda {

// How elements move.
enum class CopyMode : uint8_t {
  kStrided,    // one element a thread at a time
  kFill,       // 16 bytes of one repeated element a thread at a time
  kTranspose,  // tiles, from rows to columns
};

// Operand 0 of the index is the source, 1 the target, both in elements of `element_size` bytes; the
// positions of the index are elements (kStrided), 16-byte pieces of the target, whose last axis
// the source does not follow (kFill: target strides in pieces), or matrices (kTranspose).
struct CopyParams {
  CopyMode mode = CopyMode::kStrided;
  int element_size = 1;  // kStrided: 1, 2, 4, 8 or 16; else up to 8
  int64_t size = 0;      // positions
  StridedIndex<2> index;
  int64_t from_offset = 0, to_offset = 0;  // kFill: the target's in pieces
  // kTranspose: to[r + c * to_stride] = from[r * from_stride + c].
  int64_t rows = 0, columns = 0, from_stride = 0, to_stride = 0;
  // kTranspose of 2-byte elements: every row of that side begins at a multiple of 4 bytes.
  bool from_pairs = false, to_pairs = false;
};

cudaError_t LaunchCopy(const CopyParams& params, const void* from, void* to, cudaStream_t stream);

}  // namespace halftone::cuda
