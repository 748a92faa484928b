// Gradients of softmax, dx = y (dy - sum of y dy), and log_softmax, dx = dy - exp(y) sum of dy. The
// same three forms as softmax.cu: rows in registers, long rows in two passes, columns.
// Shared bytes: 512. Expected bound: memory. Bytes moved: y, dy and dx once, the minimum; y and dy
// twice in the other two forms.
#include "halftone/kernels/cuda/device/log_sum_exp.cuh"
#include "halftone/kernels/cuda/device/row.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/softmax.h"

namespace halftone::cuda {
namespace {

template <typename V>
__device__ V TermOf(V y, V dy, bool log) {
  return log ? dy : y * dy;
}
template <typename V>
__device__ V GradOf(V y, V dy, V sum, bool log) {
  return log ? dy - Exp(y) * sum : y * (dy - sum);
}

template <typename T, int kItems>
__global__ void __launch_bounds__(kTeamBlock, 1)
    SoftmaxGradRows(RowCut cut, bool log, const T* y, const T* dy, T* dx) {
  constexpr int kGroups = kItems / Row<T>::kGroup;
  for (Team team(cut.team); team.AnyRow(cut.rows); team.Next()) {
    const Row<T> row(team, team.row < cut.rows ? cut.n : 0, cut.packed);
    const int64_t at = team.row * cut.n;
    Compute<T> u[kGroups][Row<T>::kGroup], v[kGroups][Row<T>::kGroup];
    Compute<T> sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      row.Load(y + at, g * row.stride(), 0, u[g]);
      row.Load(dy + at, g * row.stride(), 0, v[g]);
#pragma unroll
      for (int i = 0; i < Row<T>::kGroup; ++i) sum += TermOf(u[g][i], v[g][i], log);
    }
    sum = TeamReduce(sum, Add(), Compute<T>{0}, team.size);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int i = 0; i < Row<T>::kGroup; ++i) v[g][i] = GradOf(u[g][i], v[g][i], sum, log);
      row.Store(v[g], g * row.stride(), dx + at);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    SoftmaxGradLongRows(RowCut cut, bool log, const T* y, const T* dy, T* dx) {
  for (Team team(cut.team); team.AnyRow(cut.rows); team.Next()) {
    const Row<T> row(team, cut.n, cut.packed);
    const int64_t at = team.row * cut.n;
    Compute<T> u[Row<T>::kGroup], v[Row<T>::kGroup];
    double total = 0;
    for (int64_t first = 0; first < cut.n; first += row.stride()) {
      row.Load(y + at, first, 0, u);
      row.Load(dy + at, first, 0, v);
      Compute<T> part = 0;
#pragma unroll
      for (int i = 0; i < Row<T>::kGroup; ++i) part += TermOf(u[i], v[i], log);
      total += part;
    }
    const auto sum = static_cast<Compute<T>>(TeamReduce(total, Add(), 0.0, team.size));
    for (int64_t first = 0; first < cut.n; first += row.stride()) {
      row.Load(y + at, first, 0, u);
      row.Load(dy + at, first, 0, v);
#pragma unroll
      for (int i = 0; i < Row<T>::kGroup; ++i) v[i] = GradOf(u[i], v[i], sum, log);
      row.Store(v, first, dx + at);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1)
    SoftmaxGradColumns(SoftmaxShape s, WideDivisor by_inner, const T* y, const T* dy, T* dx) {
  constexpr int kPart = 16;
  const int64_t columns = s.outer * s.inner;
  for (Team team(1); team.row < columns; team.Next()) {
    const Division place = Divide(team.row, by_inner);
    const int64_t at = place.quotient * s.classes * s.inner + place.rest;
    double total = 0;
    for (int64_t k = 0; k < s.classes;) {
      Compute<T> part = 0;
#pragma unroll 4
      for (int i = 0; i < kPart && k < s.classes; ++i, ++k) {
        part += TermOf(Widen(y[at + k * s.inner]), Widen(dy[at + k * s.inner]), s.log);
      }
      total += part;
    }
    const auto sum = static_cast<Compute<T>>(total);
#pragma unroll 4
    for (int64_t k = 0; k < s.classes; ++k) {
      const int64_t i = at + k * s.inner;
      dx[i] = Narrow<T>(GradOf(Widen(y[i]), Widen(dy[i]), sum, s.log));
    }
  }
}

template <typename T>
cudaError_t LaunchAs(const SoftmaxShape& s, DType dtype, const T* y, const T* dy, T* dx,
                     cudaStream_t stream) {
  if (s.inner > 1) {
    return LaunchKernel(SoftmaxGradColumns<T>, TeamGrid(s.outer * s.inner, 1), kTeamBlock, 0,
                        stream, s, WideDivisorOf(s.inner), y, dy, dx);
  }
  const RowCut cut = CutRows(s.outer, s.classes, dtype);
  auto* kernel = SoftmaxGradLongRows<T>;
  if constexpr (!std::is_same_v<T, double>) {
    if (cut.items == 8) kernel = SoftmaxGradRows<T, 8>;
    if (cut.items == 32) kernel = SoftmaxGradRows<T, 32>;
  }
  return LaunchKernel(kernel, TeamGrid(cut.rows, cut.team), kTeamBlock, 0, stream, cut, s.log, y,
                      dy, dx);
}

}  // namespace

cudaError_t LaunchSoftmaxGrad(const SoftmaxShape& shape, DType dtype, const void* y, const void* dy,
                              void* dx, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    return LaunchAs(shape, dtype, static_cast<const T*>(y), static_cast<const T*>(dy),
                    static_cast<T*>(dx), stream);
  });
}

}  // namespace halftone::cuda
