// StridedCopy: moves elements of 1, 2, 4 or 8 bytes between two strided views of the same extents.
// Every op that only moves values is one of these.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "halftone/core/shape.h"

namespace halftone::kernels {

class StridedCopy {
 public:
  // Element i of the extents goes from `from` + sum of i[k] from_strides[k] to `to` + sum of i[k]
  // to_strides[k]; offsets and strides are in elements of `size` bytes. A source stride may be 0
  // (broadcast). Requires: places written differ.
  StridedCopy(size_t size, absl::Span<const int64_t> dims, absl::Span<const int64_t> from_strides,
              absl::Span<const int64_t> to_strides, int64_t from = 0, int64_t to = 0);

  // On several threads.
  void Run(const void* from, void* to) const;

 private:
  struct Axis {
    int64_t extent = 1, from = 0, to = 0;
  };
  // How a run along inner_ is moved.
  enum class Mode { kContiguous, kFill, kTranspose, kStrided };

  template <typename T>
  void RunAs(const T* from, T* to) const;
  template <typename T>
  void MoveBlock(const T* from, T* to, int64_t begin, int64_t end) const;

  size_t size_;
  int64_t from_, to_;
  bool empty_ = false;
  Mode mode_ = Mode::kContiguous;
  int outer_rank_ = 0;
  std::array<Axis, kMaxRank> outer_{};  // outermost first
  int64_t outer_count_ = 1;
  Axis inner_;                // contiguous in the target where any axis is
  Axis column_;               // kTranspose: contiguous in the source
  int64_t block_extent_ = 1;  // of inner_, for one piece of work
};

}  // namespace halftone::kernels
