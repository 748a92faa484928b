// Reductions of the threads of a warp and of a block, in a fixed order: the same values give the
// same bits whatever the order in which threads run.
//
// An operation is a functor of two values, commutative; `identity` changes no value it meets.
// Every lane or thread that calls gets the result.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/device/team_size.h"

namespace halftone::cuda {

inline constexpr int kMaxWarps = 32;  // of a block

struct Add {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Min {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
// NaN wins.
struct Max {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};

// The value of the lane whose number differs in `lane_bits`. Values of more than 8 bytes overload
// it member by member.
template <typename T>
__device__ T ShuffleXor(T value, int lane_bits) {
  return __shfl_xor_sync(0xffffffffu, value, lane_bits);
}

// Over the groups of kLanes lanes of a warp, whose lanes must all call it. Both partners of a step
// combine the same two values, so all lanes end with the same bits.
template <int kLanes = kWarp, typename T, typename Op>
__device__ T WarpReduce(T value, Op op) {
#pragma unroll
  for (int bits = kLanes / 2; bits > 0; bits /= 2) value = op(value, ShuffleXor(value, bits));
  return value;
}

// Over a block of whole warps in x, whose threads must all call it.
template <typename T, typename Op>
__device__ T BlockReduce(T value, Op op, T identity) {
  HT_SHARED(T, of_warp, [kMaxWarps]);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  value = WarpReduce(value, op);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < static_cast<int>(blockDim.x) / kWarp ? of_warp[lane] : identity;
  value = WarpReduce(value, op);
  __syncthreads();  // before the next call writes
  return value;
}

}  // namespace halftone::cuda
