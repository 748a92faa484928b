// cumsum. Inner 1: a block takes a line, 256 elements a round; warps scan by shuffles (Hillis and
// Steele), their totals and the round before are added. Otherwise a thread goes down its column, so
// that neighbouring threads read neighbours. The order of a sum depends on shapes alone.
// prod. Inner 1: a team of threads strides over a line and multiplies its parts in a fixed order;
// otherwise a thread goes down its column.
// Shared bytes: 256. Bound: memory, latency of the rounds where lines are few. Bytes moved: x and y
// once.
#include "halftone/kernels/cuda/device/numeric_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/team.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/scan.h"

namespace halftone::cuda {
namespace {

// What sums and products are computed in.
template <typename T>
__device__ auto WideValue(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<unsigned long long>(x);
  } else {
    return static_cast<double>(Widen(x));
  }
}
template <typename T>
using WideValueOf = decltype(WideValue(T()));

template <typename T, typename Wide>
__device__ T NarrowValue(Wide x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    return Narrow<T>(x);
  }
}

// The value of the lane `distance` below; of the first lanes, their own.
template <typename T>
__device__ T ShuffleUp(T value, int distance) {
  return __shfl_up_sync(0xffffffffu, value, distance);
}

// The sum over the threads of the block up to this one; `total`: over all. Every thread must call.
template <typename T>
__device__ T BlockScan(T value, T* total) {
  HT_SHARED(T, of_warp, [kTeamBlock / kWarp]);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const T below = ShuffleUp(value, distance);
    if (lane >= distance) value = below + value;
  }
  if (lane == kWarp - 1) of_warp[warp] = value;
  __syncthreads();
  T before = 0, all = 0;
  for (int i = 0; i < kTeamBlock / kWarp; ++i) {
    if (i == warp) before = all;
    all += of_warp[i];
  }
  __syncthreads();  // before the next call writes
  *total = all;
  return warp == 0 ? value : before + value;
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1) CumsumLinesKernel(ScanParams p) {
  using Wide = WideValueOf<T>;
  for (int64_t line = blockIdx.x; line < p.outer; line += gridDim.x) {
    const T* x = static_cast<const T*>(p.x) + line * p.size;
    T* y = static_cast<T*>(p.y) + line * p.size;
    Wide carry = 0;
    for (int64_t first = 0; first < p.size; first += kTeamBlock) {
      const int64_t k = first + threadIdx.x, at = p.reverse ? p.size - 1 - k : k;
      const Wide own = k < p.size ? WideValue(x[at]) : Wide{0};
      Wide total;
      const Wide sum = BlockScan(own, &total);
      // A line that begins with -0 keeps it.
      if (k < p.size) y[at] = k == 0 ? x[at] : NarrowValue<T>(carry + sum);
      carry += total;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1) CumsumColumnsKernel(ScanParams p) {
  const int64_t inner = p.inner.divisor, columns = p.outer * inner;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kTeamBlock;
  for (int64_t c = static_cast<int64_t>(blockIdx.x) * kTeamBlock + threadIdx.x; c < columns;
       c += step) {
    const Division place = Divide(c, p.inner);
    const int64_t start = place.quotient * p.size * inner + place.rest;
    const T* x = static_cast<const T*>(p.x) + start;
    T* y = static_cast<T*>(p.y) + start;
    int64_t at = p.reverse ? (p.size - 1) * inner : 0;
    const int64_t stride = p.reverse ? -inner : inner;
    auto sum = WideValue(x[at]);
    y[at] = x[at];
#pragma unroll 1
    for (int64_t k = 1; k < p.size; ++k) {
      at += stride;
      sum += WideValue(x[at]);
      y[at] = NarrowValue<T>(sum);
    }
  }
}

struct Times {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a * b;
  }
};

template <typename T>
__global__ void __launch_bounds__(kTeamBlock, 1) ProdKernel(ScanParams p, int team_size) {
  using Wide = WideValueOf<T>;
  const int64_t inner = p.inner.divisor, results = p.outer * inner;
  for (Team team(team_size); team.AnyRow(results); team.Next()) {
    Wide product = 1;
    if (team.row < results) {
      const Division place = Divide(team.row, p.inner);
      const T* x = static_cast<const T*>(p.x) + place.quotient * p.size * inner + place.rest;
#pragma unroll 1
      for (int64_t k = team.rank; k < p.size; k += team.size) product *= WideValue(x[k * inner]);
    }
    product = TeamReduce(product, Times(), Wide{1}, team.size);
    if (team.rank == 0 && team.row < results) {
      static_cast<T*>(p.y)[team.row] = NarrowValue<T>(product);
    }
  }
}

template <typename T>
cudaError_t CumsumAs(const ScanParams& p, cudaStream_t stream) {
  if (p.inner.divisor == 1) {
    return LaunchKernel(CumsumLinesKernel<T>, TeamGrid(p.outer, kTeamBlock), kTeamBlock, 0, stream,
                        p);
  }
  return LaunchKernel(CumsumColumnsKernel<T>, TeamGrid(p.outer * p.inner.divisor, 1), kTeamBlock, 0,
                      stream, p);
}

template <typename T>
cudaError_t ProdAs(const ScanParams& p, cudaStream_t stream) {
  const int team = p.inner.divisor > 1 ? 1 : TeamSize(p.size, 1, 64);
  return LaunchKernel(ProdKernel<T>, TeamGrid(p.outer * p.inner.divisor, team), kTeamBlock, 0,
                      stream, p, team);
}

}  // namespace

cudaError_t LaunchCumsum(const ScanParams& params, DType dtype, cudaStream_t stream) {
  return ForNumericType(dtype, [&](auto zero) { return CumsumAs<decltype(zero)>(params, stream); });
}

cudaError_t LaunchProd(const ScanParams& params, DType dtype, cudaStream_t stream) {
  return ForNumericType(dtype, [&](auto zero) { return ProdAs<decltype(zero)>(params, stream); });
}

}  // namespace halftone::cuda
