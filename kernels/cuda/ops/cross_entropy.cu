// cross_entropy and its gradient.
//
// A line (the classes of one target) is read once: the sum of exponentials relative to the largest
// so far (log_sum_exp.cuh), and the sum of the logits for label smoothing. Contiguous classes: a
// team of threads a line, in packs of 16 bytes (row.cuh). Classes `inner` elements apart: a thread
// a line, neighbours read neighbours. The gradient is one pass with what was saved of a line. A
// reduced loss: one f64 per line, added in a fixed order (loss_sum.cuh). Shared bytes: 896.
// Expected bound: memory. Bytes moved: the minimum, and 16 a line.
#include "halftone/kernels/cuda/device/log_sum_exp.cuh"
#include "halftone/kernels/cuda/device/row.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/loss_sum.cuh"
#include "halftone/kernels/cuda/ops/losses.h"

namespace halftone::cuda {
namespace {

struct Targets {
  const void* data;
  bool wide;
  int64_t ignored, classes;
  // The class of a line; -1: it does not count.
  __device__ int64_t operator()(int64_t line) const {
    const int64_t target = wide ? static_cast<const int64_t*>(data)[line]
                                : int64_t{static_cast<const int32_t*>(data)[line]};
    const bool counts = target != ignored && target >= 0 && target < classes;
    return counts ? target : -1;
  }
};

Targets TargetsOf(const CrossEntropyShape& s, const void* data) {
  return {data, s.wide_targets, s.ignore_index, s.classes};
}

constexpr int kColumnGroup = 8;

// Of the logits of a line.
template <typename V>
struct LineSums {
  ExpSum<V> exp;
  double plain = 0;
};

// Saves what belongs to a line; `x` are its logits, `step` apart.
template <typename T, typename V>
__device__ void StoreLine(const CrossEntropyShape& s, const Targets& targets, int64_t line,
                          const T* x, int64_t step, const LineSums<V>& sums, V* losses,
                          double* line_losses, V* stats) {
  // log(exp(-inf - -inf)) where there is nothing but -inf.
  const double log_sum = sums.exp.max == -INFINITY ? static_cast<double>(NAN) : log(sums.exp.sum);
  const auto max = static_cast<double>(sums.exp.max);
  const int64_t target = targets(line);
  double loss = 0;
  if (target >= 0) {
    loss = (1 - s.smoothing) * (max - static_cast<double>(Widen(x[target * step])) + log_sum);
    // Without smoothing a class of -inf must not turn the loss into 0 * inf.
    if (s.smoothing > 0) {
      loss += s.smoothing * (max - sums.plain / static_cast<double>(s.classes) + log_sum);
    }
  }
  stats[line] = sums.exp.max;
  stats[s.outer * s.inner + line] = static_cast<V>(log_sum);
  if (s.reduction == LossReduction::kNone) {
    losses[line] = static_cast<V>(loss);
  } else {
    line_losses[line] = loss;
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    CrossEntropyRows(CrossEntropyShape s, RowCut cut, Targets targets, const T* logits,
                     Compute<T>* losses, double* line_losses, Compute<T>* stats) {
  using V = Compute<T>;
  constexpr int kGroup = Row<T>::kGroup;
  for (Team team(cut.team); team.AnyRow(cut.rows); team.Next()) {
    const bool has_line = team.row < cut.rows;
    const int64_t n = has_line ? cut.n : 0;
    const Row<T> row(team, n, cut.packed);
    const T* const x = logits + (has_line ? team.row * n : 0);
    LineSums<V> sums;
    for (int64_t first = 0; first < n; first += row.stride()) {
      V v[kGroup];
      row.Load(x, first, -INFINITY, v);
      AddGroup(v, &sums.exp);
      if (s.smoothing == 0) continue;
      V part = 0;
#pragma unroll
      for (int i = 0; i < kGroup; ++i) part += row.Index(first, i) < n ? v[i] : V{0};
      sums.plain += static_cast<double>(part);
    }
    sums.exp = TeamReduce(sums.exp, MergeExpSums(), ExpSum<V>(), team.size);
    if (s.smoothing > 0) sums.plain = TeamReduce(sums.plain, Add(), 0.0, team.size);
    if (has_line && team.rank == 0) {
      StoreLine(s, targets, team.row, x, 1, sums, losses, line_losses, stats);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    CrossEntropyColumns(CrossEntropyShape s, WideDivisor by_inner, Targets targets, const T* logits,
                        Compute<T>* losses, double* line_losses, Compute<T>* stats) {
  using V = Compute<T>;
  const int64_t lines = s.outer * s.inner;
  for (Team team(1); team.row < lines; team.Next()) {
    const Division place = Divide(team.row, by_inner);
    const T* const x = logits + place.quotient * s.classes * s.inner + place.rest;
    LineSums<V> sums;
    for (int64_t k = 0; k < s.classes; k += kColumnGroup) {
      V v[kColumnGroup], part = 0;
#pragma unroll
      for (int i = 0; i < kColumnGroup; ++i) {
        const bool is_class = k + i < s.classes;
        v[i] = is_class ? Widen(x[(k + i) * s.inner]) : V{-INFINITY};
        part += is_class ? v[i] : V{0};
      }
      AddGroup(v, &sums.exp);
      sums.plain += static_cast<double>(part);
    }
    StoreLine(s, targets, team.row, x, s.inner, sums, losses, line_losses, stats);
  }
}

// The gradient of a line's logits.
template <typename V>
struct LineGrad {
  template <typename Arrays>
  __device__ LineGrad(const CrossEntropyShape& s, const Targets& targets, const Arrays& a,
                      int64_t line)
      : target(targets(line)),
        max(static_cast<const V*>(a.stats)[line]),
        log_sum(static_cast<const V*>(a.stats)[s.outer * s.inner + line]),
        scale(static_cast<const V*>(a.dloss)[s.reduction == LossReduction::kNone ? line : 0]),
        even(static_cast<V>(s.smoothing / static_cast<double>(s.classes))),
        hit(static_cast<V>(1 - s.smoothing)) {
    if (s.reduction == LossReduction::kMean) scale /= static_cast<V>(*a.counted);
  }
  __device__ V operator()(V logit, int64_t k) const {
    const V label = (k == target ? hit : V{0}) + even;
    return target >= 0 ? (Exp(logit - max - log_sum) - label) * scale : V{0};
  }
  int64_t target;
  V max, log_sum, scale, even, hit;
};

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    CrossEntropyGradRows(CrossEntropyShape s, RowCut cut, Targets targets,
                         CrossEntropyGradArrays a) {
  constexpr int kGroup = Row<T>::kGroup;
  for (Team team(cut.team); team.row < cut.rows; team.Next()) {
    const Row<T> row(team, cut.n, cut.packed);
    const LineGrad<Compute<T>> grad(s, targets, a, team.row);
    const T* const x = static_cast<const T*>(a.logits) + team.row * cut.n;
    T* const dx = static_cast<T*>(a.dlogits) + team.row * cut.n;
    for (int64_t first = 0; first < cut.n; first += row.stride()) {
      Compute<T> v[kGroup];
      row.Load(x, first, 0, v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) v[i] = grad(v[i], row.Index(first, i));
      row.Store(v, first, dx);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    CrossEntropyGradColumns(CrossEntropyShape s, WideDivisor by_inner, Targets targets,
                            CrossEntropyGradArrays a) {
  const int64_t lines = s.outer * s.inner;
  for (Team team(1); team.row < lines; team.Next()) {
    const Division place = Divide(team.row, by_inner);
    const int64_t at = place.quotient * s.classes * s.inner + place.rest;
    const LineGrad<Compute<T>> grad(s, targets, a, team.row);
    const T* const x = static_cast<const T*>(a.logits) + at;
    T* const dx = static_cast<T*>(a.dlogits) + at;
#pragma unroll 4
    for (int64_t k = 0; k < s.classes; ++k) {
      dx[k * s.inner] = Narrow<T>(grad(Widen(x[k * s.inner]), k));
    }
  }
}

// Groups are read one after the other, so that a warp serves longer rows than where they stay in
// registers.
RowCut CutLines(const CrossEntropyShape& s) {
  RowCut cut = CutRows(s.outer, s.classes, s.dtype);
  cut.team = TeamSize(s.classes, /*few=*/8, /*most=*/32);
  return cut;
}

template <typename T>
cudaError_t Forward(const CrossEntropyShape& s, const CrossEntropyArrays& a, cudaStream_t stream) {
  using V = Compute<T>;
  const auto* const logits = static_cast<const T*>(a.logits);
  V *const loss = static_cast<V*>(a.loss), *const stats = static_cast<V*>(a.stats);
  const Targets targets = TargetsOf(s, a.targets);
  cudaError_t error = cudaSuccess;
  if (s.lines() > 0 && s.inner > 1) {
    error = LaunchKernel(CrossEntropyColumns<T>, TeamGrid(s.lines(), 1), kTeamBlock, 0, stream, s,
                         WideDivisorOf(s.inner), targets, logits, loss, a.line_losses, stats);
  } else if (s.lines() > 0) {
    const RowCut cut = CutLines(s);
    error = LaunchKernel(CrossEntropyRows<T>, TeamGrid(cut.rows, cut.team), kTeamBlock, 0, stream,
                         s, cut, targets, logits, loss, a.line_losses, stats);
  }
  if (error != cudaSuccess || s.reduction == LossReduction::kNone) return error;
  return LaunchSumLoss(a.line_losses, s.lines(),
                       s.reduction == LossReduction::kMean ? a.counted : nullptr, 1.0, loss,
                       stream);
}

template <typename T>
cudaError_t Grad(const CrossEntropyShape& s, const CrossEntropyGradArrays& a, cudaStream_t stream) {
  if (s.lines() == 0) return cudaSuccess;
  const Targets targets = TargetsOf(s, a.targets);
  if (s.inner > 1) {
    return LaunchKernel(CrossEntropyGradColumns<T>, TeamGrid(s.lines(), 1), kTeamBlock, 0, stream,
                        s, WideDivisorOf(s.inner), targets, a);
  }
  const RowCut cut = CutLines(s);
  return LaunchKernel(CrossEntropyGradRows<T>, TeamGrid(cut.rows, cut.team), kTeamBlock, 0, stream,
                      s, cut, targets, a);
}

}  // namespace

cudaError_t LaunchCrossEntropy(const CrossEntropyShape& shape, const CrossEntropyArrays& arrays,
                               cudaStream_t stream) {
  return ForFloatType(shape.dtype,
                      [&](auto zero) { return Forward<decltype(zero)>(shape, arrays, stream); });
}

cudaError_t LaunchCrossEntropyGrad(const CrossEntropyShape& shape,
                                   const CrossEntropyGradArrays& arrays, cudaStream_t stream) {
  return ForFloatType(shape.dtype,
                      [&](auto zero) { return Grad<decltype(zero)>(shape, arrays, stream); });
}

}  // namespace halftone::cuda
