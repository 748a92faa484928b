// The host's side of strided access: axes of several operands ordered and merged.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "halftone/graph/ir/types.h"
#include "halftone/kernels/cuda/device/strided.h"

namespace halftone::cuda {

inline constexpr int kMaxOperands = 4;

// One axis of an iteration; strides in elements, of the target first.
struct StridedAxis {
  int64_t extent;
  std::array<int64_t, kMaxOperands> strides;
};

// The axes of extent over 1, ordered by the target's memory (its last one is contiguous there if
// any is) and merged where every operand allows it. At least one axis: one element is extent 1.
std::vector<StridedAxis> CollapseAxes(const std::vector<StridedAxis>& axes);

// Of an elementwise op: the result, then the operands, which broadcast to its shape. After
// collapsing, the result is dense.
std::vector<StridedAxis> BroadcastAxes(const ir::ValueType& result,
                                       absl::Span<const ir::ValueType> operands);

// Division by `divisor`, 1 or more and below 2^31.
Divisor MakeDivisor(int64_t divisor);

// Operand k of the index is operand first + k of the axes.
template <int N>
StridedIndex<N> MakeIndex(const std::vector<StridedAxis>& axes, int first) {
  constexpr int64_t kEnd = int64_t{1} << 31;
  StridedIndex<N> index;
  index.axes = static_cast<int>(axes.size());
  int64_t size = 1;
  std::array<int64_t, N> last{};
  for (size_t i = 0; i < axes.size(); ++i) {
    index.extents[i] = axes[i].extent;
    size *= axes[i].extent;
    for (int k = 0; k < N; ++k) {
      index.strides[i][k] = axes[i].strides[first + k];
      last[k] += (axes[i].extent - 1) * index.strides[i][k];
    }
  }
  index.narrow = size < kEnd;
  for (int64_t offset : last) index.narrow = index.narrow && offset < kEnd;
  for (int i = 0; index.narrow && i < index.axes; ++i) {
    if (index.extents[i] > 0) index.divisors[i] = MakeDivisor(index.extents[i]);
  }
  return index;
}

// Whether every pointer is a multiple of 16 bytes.
inline bool Aligned16(absl::Span<const void* const> pointers) {
  for (const void* p : pointers) {
    if (reinterpret_cast<uintptr_t>(p) % 16 != 0) return false;
  }
  return true;
}

}  // namespace halftone::cuda
