// Inner 1: a team of threads strides over a row, each keeps the first of its largest elements, and
// the team keeps the largest, of equals the smallest index. Otherwise a thread goes down its
// column, so that neighbouring threads read neighbouring elements.
// Shared bytes: 768. Expected bound: memory. Bytes moved: x once, y once.
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/team.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/argmax.h"

namespace halftone::cuda {
namespace {

template <typename T>
struct Candidate {
  T value;
  int64_t index;
};

template <typename T>
__device__ Candidate<T> ShuffleXor(Candidate<T> c, int lane_bits) {
  return {cuda::ShuffleXor(c.value, lane_bits), cuda::ShuffleXor(c.index, lane_bits)};
}

struct Better {
  template <typename T>
  __device__ Candidate<T> operator()(Candidate<T> a, Candidate<T> b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool same = a_nan ? b_nan : a.value == b.value;
    if (same) return a.index < b.index ? a : b;
    return a_nan || (!b_nan && a.value > b.value) ? a : b;
  }
};

// What elements are compared as.
template <typename T>
__device__ auto Comparable(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(x);
  } else {
    return Widen(x);
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1) ArgmaxKernel(ArgmaxParams p, int team_size) {
  using Value = decltype(Comparable(T()));
  const int64_t inner = p.inner.divisor, results = p.outer * inner;
  for (Team team(team_size); team.AnyRow(results); team.Next()) {
    // Ranks without an element hold the first.
    Candidate<Value> best{};
    if (team.row < results) {
      const Division place = Divide(team.row, p.inner);
      const T* x = static_cast<const T*>(p.x) + place.quotient * p.classes * inner + place.rest;
      best = {Comparable(x[0]), 0};
      // Unrolled, the number of rounds would be a 64-bit division.
#pragma unroll 1
      for (int64_t k = team.rank; k < p.classes; k += team.size) {
        best = Better()(best, Candidate<Value>{Comparable(x[k * inner]), k});
      }
    }
    best = TeamReduce(best, Better(), best, team.size);
    if (team.rank == 0 && team.row < results) p.y[team.row] = best.index;
  }
}

template <typename T>
cudaError_t LaunchAs(const ArgmaxParams& p, cudaStream_t stream) {
  const int team = p.inner.divisor > 1 ? 1 : TeamSize(p.classes, 1, 64);
  return LaunchKernel(ArgmaxKernel<T>, TeamGrid(p.outer * p.inner.divisor, team), kTeamBlock, 0,
                      stream, p, team);
}

}  // namespace

cudaError_t LaunchArgmax(const ArgmaxParams& params, DType x, cudaStream_t stream) {
  switch (x) {
    case DType::kF64:
      return LaunchAs<double>(params, stream);
    case DType::kF32:
      return LaunchAs<float>(params, stream);
    case DType::kF16:
      return LaunchAs<__half>(params, stream);
    case DType::kBF16:
      return LaunchAs<__nv_bfloat16>(params, stream);
    case DType::kI64:
      return LaunchAs<int64_t>(params, stream);
    case DType::kI32:
      return LaunchAs<int32_t>(params, stream);
    case DType::kU8:
      return LaunchAs<uint8_t>(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
