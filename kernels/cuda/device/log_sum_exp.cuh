// The sum of exponentials of values that come one group after the other, relative to the largest so
// far ("online softmax": Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018).
// f32 within a group, f64 over groups: a vocabulary has 10^5 classes.
#pragma once

#include "halftone/kernels/cuda/device/reduce.cuh"

namespace halftone::cuda {

__device__ inline float Exp(float x) { return expf(x); }
__device__ inline double Exp(double x) { return exp(x); }
__device__ inline float Log(float x) { return logf(x); }
__device__ inline double Log(double x) { return log(x); }

// V: float, or double for f64.
template <typename V>
struct ExpSum {
  V max = -INFINITY;
  double sum = 0;  // of exp(x - max)
};

// Elements of -inf change nothing. NaN and inf make the sum NaN.
template <typename V, int N>
__device__ void AddGroup(const V (&v)[N], ExpSum<V>* total) {
  V max = v[0];
#pragma unroll
  for (int i = 1; i < N; ++i) max = Max()(max, v[i]);
  if (!(max <= total->max)) {
    total->sum *= Exp(total->max - max);
    total->max = max;
  }
  if (total->max == -INFINITY) return;
  V sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += Exp(v[i] - total->max);
  total->sum += sum;
}

template <typename V>
__device__ ExpSum<V> ShuffleXor(const ExpSum<V>& value, int lane_bits) {
  return {ShuffleXor(value.max, lane_bits), ShuffleXor(value.sum, lane_bits)};
}

struct MergeExpSums {
  template <typename V>
  __device__ ExpSum<V> operator()(const ExpSum<V>& a, const ExpSum<V>& b) const {
    const V max = Max()(a.max, b.max);
    return {max, a.sum * Scale(a.max, max) + b.sum * Scale(b.max, max)};
  }
  // Equal infinities have no difference.
  template <typename V>
  static __device__ V Scale(V from, V to) {
    return from == to ? V{1} : Exp(from - to);
  }
};

}  // namespace halftone::cuda
