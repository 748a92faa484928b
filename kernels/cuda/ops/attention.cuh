// What the kernels of attention and of its gradient share: tiles of dot products, and from a score
// to a weight.
#pragma once

#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/log_sum_exp.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/philox.cuh"
#include "halftone/kernels/cuda/ops/attention.h"

namespace halftone::cuda::attention {

// Kernels say __launch_bounds__(kThreads, 1), as those of teams do (team.cuh).
inline constexpr int kThreads = 128;
// A tile of kRows x kColumns; a thread has kOwn of a row, kStep apart.
inline constexpr int kRows = 16, kColumns = 32;
inline constexpr int kOwn = kRows * kColumns / kThreads, kStep = kColumns / kOwn;
// Columns of the operands that a step of a dot product, or a block's results, take.
inline constexpr int kDepth = 32, kChunk = kThreads;

__device__ inline int RowOfThread() { return static_cast<int>(threadIdx.x) / kStep; }
__device__ inline int ColumnOfThread(int own) {
  return static_cast<int>(threadIdx.x) % kStep + own * kStep;
}

template <typename V>
struct Slices {
  V rows[kRows][kDepth + 1];
  V columns[kColumns][kDepth + 1];
};

// Rows of an operand: the first, the elements between them, and how many there are.
template <typename T>
struct RowsAt {
  const T* data;
  int64_t stride, count;
};

// dots[own] = row RowOfThread() of a times row ColumnOfThread(own) of b, over `depth` columns; rows
// beyond the counts are 0. Every thread of the block must call it.
template <typename T, typename V = Compute<T>>
__device__ void TileDots(RowsAt<T> a, RowsAt<T> b, int64_t depth, Slices<V>* part,
                         V (&dots)[kOwn]) {
#pragma unroll
  for (V& dot : dots) dot = 0;
  for (int64_t first = 0; first < depth; first += kDepth) {
    for (int e = static_cast<int>(threadIdx.x); e < (kRows + kColumns) * kDepth; e += kThreads) {
      const int row = e / kDepth, column = e % kDepth;
      const bool of_a = row < kRows;
      const int64_t in_operand = of_a ? row : row - kRows;
      V value = 0;
      // Number by number: a reference to one of two structs would lie in local memory.
      const T* const data = of_a ? a.data : b.data;
      const int64_t stride = of_a ? a.stride : b.stride, count = of_a ? a.count : b.count;
      if (first + column < depth && in_operand < count) {
        value = Widen(data[in_operand * stride + first + column]);
      }
      (of_a ? part->rows[in_operand] : part->columns[in_operand])[column] = value;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      const V left = part->rows[RowOfThread()][d];
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        dots[own] += left * part->columns[ColumnOfThread(own)][d];
      }
    }
    __syncthreads();
  }
}

// One head of query.
template <typename V>
class Head {
 public:
  __device__ Head(const AttentionParams& params, const void* mask_data, int64_t head, uint64_t run)
      : p_(params), mask_(mask_data), head_(head), run_(run) {
    int64_t rest = head;
    for (int axis = p_.axes - 1; axis >= 0; --axis) {
      mask_at_ += rest % p_.axis[axis].extent * p_.axis[axis].mask_stride;
      rest /= p_.axis[axis].extent;
    }
  }

  // The score of a dot product, masks applied; -inf beyond the ends.
  __device__ V Score(V dot, int64_t query, int64_t key) const {
    if (query >= p_.length || key >= p_.keys || (p_.causal && key > query)) return -INFINITY;
    const V score = dot * static_cast<V>(p_.scale);
    if (!p_.has_mask) return score;
    const int64_t at = mask_at_ + query * p_.mask_row + key * p_.mask_column;
    if (!p_.bool_mask) return score + static_cast<const V*>(mask_)[at];
    return static_cast<const bool*>(mask_)[at] ? score : -INFINITY;
  }

  // What dropout multiplies the weight by: 0 or 1 / (1 - p).
  __device__ V Keep(int64_t query, int64_t key) const {
    if (p_.threshold == 0) return 1;
    const int64_t i = (head_ * p_.length + query) * p_.keys + key;
    const PhiloxWords words = PhiloxBlock(p_.seed, run_, static_cast<uint64_t>(i / 4));
    const auto lane = static_cast<int>(i % 4);
    const uint32_t word = lane == 0   ? words.v[0]
                          : lane == 1 ? words.v[1]
                          : lane == 2 ? words.v[2]
                                      : words.v[3];
    return static_cast<int32_t>(word >> 8) >= p_.threshold ? static_cast<V>(p_.keep) : V{0};
  }

 private:
  const AttentionParams& p_;
  const void* mask_;
  int64_t head_, mask_at_ = 0;
  uint64_t run_;
};

// Blocks of a launch: `tiles` tiles of rows of each head, `chunks` of columns of each tile. Block b
// has chunk b % chunks.
inline dim3 Grid(int64_t heads, int64_t tiles, int64_t chunks) {
  const int64_t blocks = heads * tiles * chunks, most = int64_t{1} << 30;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

__host__ __device__ inline int64_t Parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

}  // namespace halftone::cuda::attention
