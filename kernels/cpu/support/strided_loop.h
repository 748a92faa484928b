// StridedLoop: how elementwise kernels walk operands of different shapes and layouts.
//
// Axes are ordered by the result's memory order, axes of extent 1 dropped and neighbours merged
// where every operand allows it. The result is then one dense array, walked in rows of `inner`
// elements; within a row each operand advances by its inner stride, which is 1, or 0 where it is
// broadcast, in all common cases.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "halftone/core/threads.h"
#include "halftone/graph/ir/types.h"

namespace halftone::kernels {

class StridedLoop {
 public:
  static constexpr int kMaxOperands = 3;
  using Offsets = std::array<int64_t, kMaxOperands>;

  // Every operand's shape broadcasts to the result's.
  StridedLoop(const ir::ValueType& result, const std::vector<ir::ValueType>& operands);

  int64_t inner() const { return inner_; }
  int64_t rows() const { return rows_; }
  int64_t inner_stride(int operand) const { return inner_strides_[operand]; }

  // Calls fn(result_offset, operand_offsets, count) for pieces of rows that cover the result once,
  // on several threads. Offsets are in elements.
  template <typename Fn>
  void Run(int64_t grain, const Fn& fn) const {
    if (rows_ == 1) {
      ParallelFor(0, inner_, grain, [&](int64_t begin, int64_t end) {
        Offsets offsets{};
        for (int k = 0; k < kMaxOperands; ++k) offsets[k] = begin * inner_strides_[k];
        fn(begin, offsets, end - begin);
      });
      return;
    }
    const int64_t row_grain = std::max<int64_t>(1, grain / std::max<int64_t>(1, inner_));
    ParallelFor(0, rows_, row_grain, [&](int64_t begin, int64_t end) {
      std::array<int64_t, kMaxRank> index{};
      Offsets offsets = Seek(begin, index);
      for (int64_t row = begin; row < end; ++row) {
        fn(row * inner_, offsets, inner_);
        Advance(index, offsets);
      }
    });
  }

 private:
  Offsets Seek(int64_t row, std::array<int64_t, kMaxRank>& index) const;
  void Advance(std::array<int64_t, kMaxRank>& index, Offsets& offsets) const {
    for (int axis = outer_rank_ - 1; axis >= 0; --axis) {
      for (int k = 0; k < kMaxOperands; ++k) offsets[k] += outer_strides_[axis][k];
      if (++index[axis] < outer_dims_[axis]) return;
      for (int k = 0; k < kMaxOperands; ++k)
        offsets[k] -= outer_strides_[axis][k] * outer_dims_[axis];
      index[axis] = 0;
    }
  }

  int64_t inner_ = 1, rows_ = 1;
  Offsets inner_strides_{};
  int outer_rank_ = 0;
  std::array<int64_t, kMaxRank> outer_dims_{};
  std::array<Offsets, kMaxRank> outer_strides_{};
};

}  // namespace halftone::kernels
