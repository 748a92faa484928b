// The host's half of CopyParams.
#pragma once

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "halftone/kernels/cuda/runtime/copy.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {

// Element i of the extents goes from `from_offset` + sum of i[k] from_strides[k] to `to_offset` +
// sum of i[k] to_strides[k], offsets and strides in elements.
struct CopyView {
  std::vector<int64_t> extents, from_strides, to_strides;
  int64_t from_offset = 0, to_offset = 0;
};

// One view, ready to be moved: contiguous bytes, wide elements, a fill or a transposition.
class StridedCopy {
 public:
  // A source stride may be 0 (broadcast). Requires: places written differ.
  StridedCopy(int element_size, const CopyView& view);
  // Puts the copy on the stream; nothing if it has no element.
  absl::Status Launch(const void* from, void* to, cudaStream_t stream) const;
  // What moves the elements where both arrays are aligned to 16 bytes; empty: contiguous bytes.
  std::optional<CopyMode> mode() const;
  int moved_size() const { return wide_.element_size; }

 private:
  int64_t contiguous_bytes_ = 0;  // above 0: one run on both sides
  int64_t from_byte_ = 0, to_byte_ = 0;
  bool empty_ = false;
  CopyParams wide_;    // for arrays aligned to 16 bytes
  CopyParams narrow_;  // for all
};

}  // namespace halftone::cuda
