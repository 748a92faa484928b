// softmax and log_softmax. Three forms:
//
// Rows of up to 8192 contiguous classes stay in the registers of a team of threads (8 or 32 each; a
// part of a warp, a warp, or a block of 256): x is read once.
// Longer rows: a block per row, two passes over x: the sum of exponentials, then the result.
// Classes that are `inner` elements apart: a thread goes down its column twice, neighbouring
// threads read neighbouring elements.
// Shared bytes: 640. Expected bound: memory. Bytes moved: x and y once, the minimum; x twice in
// the other two forms, where the second reading mostly comes from the L2 cache.
#include "halftone/kernels/cuda/device/log_sum_exp.cuh"
#include "halftone/kernels/cuda/device/row.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/softmax.h"

namespace halftone::cuda {
namespace {

constexpr int kColumnGroup = 8;

template <typename T, int kItems>
__global__ void __launch_bounds__(kTeamBlock, 1)
    SoftmaxRows(RowCut cut, bool log, const T* x, T* y) {
  using V = Compute<T>;
  constexpr int kGroups = kItems / Row<T>::kGroup;
  for (Team team(cut.team); team.AnyRow(cut.rows); team.Next()) {
    const Row<T> row(team, team.row < cut.rows ? cut.n : 0, cut.packed);
    const int64_t at = team.row * cut.n;
    V v[kGroups][Row<T>::kGroup];
    V max = -INFINITY;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      row.Load(x + at, g * row.stride(), -INFINITY, v[g]);
#pragma unroll
      for (V e : v[g]) max = Max()(max, e);
    }
    max = TeamReduce(max, Max(), static_cast<V>(-INFINITY), team.size);
    V sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (V& e : v[g]) {
        const V shifted = e - max, power = Exp(shifted);
        sum += power;
        e = log ? shifted : power;
      }
    }
    sum = TeamReduce(sum, Add(), V{0}, team.size);
    const V last = log ? Log(sum) : 1 / sum;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (V& e : v[g]) e = log ? e - last : e * last;
      row.Store(v[g], g * row.stride(), y + at);
    }
  }
}

// The result of an element, from those of its line.
template <typename V>
struct Normalizer {
  __device__ Normalizer(const ExpSum<V>& total, bool is_log) : max(total.max), log(is_log) {
    const auto sum = static_cast<V>(total.sum);
    last = is_log ? Log(sum) : 1 / sum;
  }
  __device__ V operator()(V x) const { return log ? x - max - last : Exp(x - max) * last; }
  V max, last;
  bool log;
};

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    SoftmaxLongRows(RowCut cut, bool log, const T* x, T* y) {
  for (Team team(cut.team); team.AnyRow(cut.rows); team.Next()) {
    const Row<T> row(team, cut.n, cut.packed);
    const int64_t at = team.row * cut.n;
    ExpSum<Compute<T>> total;
    Compute<T> v[Row<T>::kGroup];
    for (int64_t first = 0; first < cut.n; first += row.stride()) {
      row.Load(x + at, first, -INFINITY, v);
      AddGroup(v, &total);
    }
    const Normalizer result(TeamReduce(total, MergeExpSums(), ExpSum<Compute<T>>(), team.size),
                            log);
    for (int64_t first = 0; first < cut.n; first += row.stride()) {
      row.Load(x + at, first, 0, v);
#pragma unroll
      for (Compute<T>& e : v) e = result(e);
      row.Store(v, first, y + at);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    SoftmaxColumns(SoftmaxShape s, WideDivisor by_inner, const T* x, T* y) {
  const int64_t columns = s.outer * s.inner;
  for (Team team(1); team.row < columns; team.Next()) {
    const Division place = Divide(team.row, by_inner);
    const int64_t at = place.quotient * s.classes * s.inner + place.rest;
    ExpSum<Compute<T>> total;
    for (int64_t k = 0; k < s.classes; k += kColumnGroup) {
      Compute<T> v[kColumnGroup];
#pragma unroll
      for (int i = 0; i < kColumnGroup; ++i) {
        v[i] = k + i < s.classes ? Widen(x[at + (k + i) * s.inner]) : -INFINITY;
      }
      AddGroup(v, &total);
    }
    const Normalizer result(total, s.log);
#pragma unroll 4
    for (int64_t k = 0; k < s.classes; ++k) {
      const int64_t i = at + k * s.inner;
      y[i] = Narrow<T>(result(Widen(x[i])));
    }
  }
}

template <typename T>
cudaError_t LaunchAs(const SoftmaxShape& s, DType dtype, const T* x, T* y, cudaStream_t stream) {
  if (s.inner > 1) {
    return LaunchKernel(SoftmaxColumns<T>, TeamGrid(s.outer * s.inner, 1), kTeamBlock, 0, stream, s,
                        WideDivisorOf(s.inner), x, y);
  }
  const RowCut cut = CutRows(s.outer, s.classes, dtype);
  auto* kernel = SoftmaxLongRows<T>;
  if constexpr (!std::is_same_v<T, double>) {
    if (cut.items == 8) kernel = SoftmaxRows<T, 8>;
    if (cut.items == 32) kernel = SoftmaxRows<T, 32>;
  }
  return LaunchKernel(kernel, TeamGrid(cut.rows, cut.team), kTeamBlock, 0, stream, cut, s.log, x,
                      y);
}

}  // namespace

cudaError_t LaunchSoftmax(const SoftmaxShape& shape, DType dtype, const void* x, void* y,
                          cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    return LaunchAs(shape, dtype, static_cast<const T*>(x), static_cast<T*>(y), stream);
  });
}

}  // namespace halftone::cuda
