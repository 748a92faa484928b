// cross_entropy and its gradient.
//
// A line (the classes of one target) is read twice: its maximum, then the sum of exponentials (and
// of the logits, for label smoothing). Contiguous classes: a team of threads a line (team.cuh).
// Classes `inner` elements apart: a thread a line, neighbours read neighbours. The gradient is one
// pass with the saved log-sum-exp. A reduced loss is added by one block. Shared: 256 bytes. Bound:
// memory; the second reading comes from the caches for lines up to some 10^5 classes.
#include "halftone/kernels/cuda/loss_sum.cuh"
#include "halftone/kernels/cuda/losses.h"
#include "halftone/kernels/cuda/pack.cuh"
#include "halftone/kernels/cuda/team.cuh"

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

__device__ int64_t FirstOf(const CrossEntropyShape& s, int64_t inner, int64_t line) {
  return line / inner * s.classes * inner + line % inner;
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock)
    CrossEntropyKernel(CrossEntropyShape s, Targets targets, int team_size, int64_t lines,
                       const T* logits, Compute<T>* losses, double* line_losses,
                       Compute<T>* log_sum_exp) {
  using V = Compute<T>;
  const V lowest = -INFINITY;
  for (Team team(team_size); team.AnyRow(lines); team.Next()) {
    const int64_t line = team.row;
    const bool has_line = line < lines;
    const T* const x = logits + (has_line ? FirstOf(s, s.inner, line) : 0);
    const int64_t classes = has_line ? s.classes : 0;
    V max = lowest;
    for (int64_t k = team.rank; k < classes; k += team.size)
      max = Max()(max, Widen(x[k * s.inner]));
    max = TeamReduce(max, Max(), lowest, team.size);
    V powers = 0, plain = 0;
    for (int64_t k = team.rank; k < classes; k += team.size) {
      const V v = Widen(x[k * s.inner]);
      powers += exp(v - max);
      plain += v;
    }
    const double sum = TeamReduce(static_cast<double>(powers), Add(), 0.0, team.size);
    const double logit_sum = TeamReduce(static_cast<double>(plain), Add(), 0.0, team.size);
    if (!has_line || team.rank != 0) continue;
    const double lse = static_cast<double>(max) + log(sum);
    const int64_t target = targets(line);
    double loss = 0;
    if (target >= 0) {
      loss = (1 - s.smoothing) * (lse - static_cast<double>(Widen(x[target * s.inner])));
      // Without smoothing a class of -inf must not turn the loss into 0 * inf.
      if (s.smoothing > 0) loss += s.smoothing * (lse - logit_sum / static_cast<double>(s.classes));
    }
    log_sum_exp[line] = static_cast<V>(lse);
    if (s.reduction == LossReduction::kNone) {
      losses[line] = static_cast<V>(loss);
    } else {
      line_losses[line] = loss;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock)
    CrossEntropyGradKernel(CrossEntropyShape s, Targets targets, int team_size, int64_t lines,
                           const T* logits, const Compute<T>* log_sum_exp, const Compute<T>* dloss,
                           const int64_t* counted, T* dlogits) {
  using V = Compute<T>;
  const V even = static_cast<V>(s.smoothing / static_cast<double>(s.classes));
  const V hit = static_cast<V>(1 - s.smoothing);
  for (Team team(team_size); team.AnyRow(lines); team.Next()) {
    const int64_t line = team.row;
    if (line >= lines) continue;
    const int64_t first = FirstOf(s, s.inner, line), target = targets(line);
    const V lse = log_sum_exp[line];
    V d = dloss[s.reduction == LossReduction::kNone ? line : 0];
    if (s.reduction == LossReduction::kMean) d /= static_cast<V>(*counted);
    for (int64_t k = team.rank; k < s.classes; k += team.size) {
      const int64_t i = first + k * s.inner;
      const V p = exp(Widen(logits[i]) - lse);
      const V label = (k == target ? hit : V{0}) + even;
      dlogits[i] = Narrow<T>(target >= 0 ? (p - label) * d : V{0});
    }
  }
}

// A thread takes 8 classes of a contiguous line at least, a team 32 a lane at most.
int TeamOf(const CrossEntropyShape& s) { return s.inner > 1 ? 1 : TeamSize(s.classes, 8, 32); }

template <typename T>
cudaError_t Forward(const CrossEntropyShape& s, const CrossEntropyArrays& a, cudaStream_t stream) {
  using V = Compute<T>;
  if (s.lines() > 0) {
    const int team = TeamOf(s);
    const cudaError_t error =
        LaunchKernel(CrossEntropyKernel<T>, TeamGrid(s.lines(), team), kTeamBlock, 0, stream, s,
                     TargetsOf(s, a.targets), team, s.lines(), static_cast<const T*>(a.logits),
                     static_cast<V*>(a.loss), a.line_losses, static_cast<V*>(a.log_sum_exp));
    if (error != cudaSuccess || s.reduction == LossReduction::kNone) return error;
  }
  if (s.reduction == LossReduction::kNone) return cudaSuccess;
  return LaunchSumLoss(a.line_losses, s.lines(),
                       s.reduction == LossReduction::kMean ? a.counted : nullptr, 1.0,
                       static_cast<V*>(a.loss), stream);
}

template <typename T>
cudaError_t Grad(const CrossEntropyShape& s, const CrossEntropyGradArrays& a, cudaStream_t stream) {
  using V = Compute<T>;
  if (s.lines() == 0) return cudaSuccess;
  const int team = TeamOf(s);
  return LaunchKernel(CrossEntropyGradKernel<T>, TeamGrid(s.lines(), team), kTeamBlock, 0, stream,
                      s, TargetsOf(s, a.targets), team, s.lines(), static_cast<const T*>(a.logits),
                      static_cast<const V*>(a.log_sum_exp), static_cast<const V*>(a.dloss),
                      a.counted, static_cast<T*>(a.dlogits));
}

}  // namespace

cudaError_t LaunchCrossEntropy(const CrossEntropyShape& shape, const CrossEntropyArrays& arrays,
                               cudaStream_t stream) {
  switch (shape.dtype) {
    case DType::kF64:
      return Forward<double>(shape, arrays, stream);
    case DType::kF16:
      return Forward<__half>(shape, arrays, stream);
    case DType::kBF16:
      return Forward<__nv_bfloat16>(shape, arrays, stream);
    default:
      return Forward<float>(shape, arrays, stream);
  }
}

cudaError_t LaunchCrossEntropyGrad(const CrossEntropyShape& shape,
                                   const CrossEntropyGradArrays& arrays, cudaStream_t stream) {
  switch (shape.dtype) {
    case DType::kF64:
      return Grad<double>(shape, arrays, stream);
    case DType::kF16:
      return Grad<__half>(shape, arrays, stream);
    case DType::kBF16:
      return Grad<__nv_bfloat16>(shape, arrays, stream);
    default:
      return Grad<float>(shape, arrays, stream);
  }
}

}  // namespace halftone::cuda
