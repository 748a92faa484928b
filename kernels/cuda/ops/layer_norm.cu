// layer_norm and layer_norm_grad.
//
// Forward, a row of x: its mean, then the sums of the deviations from it and of their squares (the
// first corrects the rounding of the mean, so a large one costs no digits), then y. Gradient of x:
// the means of g = dy gamma and of g xhat over the row, then dx. Gradients of gamma and beta: sums
// over the columns (column_sums.cuh).
//
// Mapping: rows of up to 1,024 values take a warp each, four to a block; longer ones a block of
// 256. A thread adds in f32 (f64 for f64) what it reads in 16-byte accesses, f64 adds the threads.
// Shared: 256 bytes. Bound: memory; x (and dy) are read once from memory and again from the caches.
#include "halftone/kernels/cuda/device/column_sums.cuh"
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/layer_norm.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kLongestWarpRow = 1024;
constexpr int kRowsOfWarps = 4;
constexpr int kThreadsOfLongRow = 256;

// N values of a parameter or of a row, whatever their width.
template <int N, typename T>
__device__ void LoadSome(const T* p, Compute<T> (&values)[N]) {
  constexpr int kAtOnce = N < kPackOf<T> ? N : kPackOf<T>;
#pragma unroll
  for (int i = 0; i < N; i += kAtOnce) {
    Compute<T> part[kAtOnce];
    LoadPack<kAtOnce>(p + i, part);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) values[i + j] = part[j];
  }
}

// The threads that share a row: a warp, or a block.
template <bool kWarpRow>
struct RowTeam {
  static __device__ int64_t Row() {
    return kWarpRow ? int64_t{blockIdx.x} * kRowsOfWarps + threadIdx.y : int64_t{blockIdx.x};
  }
  static __device__ double Sum(double value) {
    if constexpr (kWarpRow) {
      return WarpReduce(value, Add{});
    } else {
      return BlockReduce(value, Add{}, 0.0);
    }
  }
};

template <typename T, int N, bool kWarpRow>
__global__ void LayerNormKernel(LayerNormArrays a, int64_t rows, int64_t size, double eps) {
  using V = Compute<T>;
  using Team = RowTeam<kWarpRow>;
  const int64_t row = Team::Row();
  if (kWarpRow && row >= rows) return;  // all lanes of a warp alike
  const T* const x = static_cast<const T*>(a.x) + row * size;
  const int64_t start = int64_t{threadIdx.x} * N, step = int64_t{blockDim.x} * N;
  const double n = static_cast<double>(size);

  V sum = 0;
  for (int64_t i = start; i < size; i += step) {
    V v[N];
    LoadPack<N>(x + i, v);
#pragma unroll
    for (int j = 0; j < N; ++j) sum += v[j];
  }
  const V rough = static_cast<V>(Team::Sum(static_cast<double>(sum)) / n);
  V first = 0, second = 0;
  for (int64_t i = start; i < size; i += step) {
    V v[N];
    LoadPack<N>(x + i, v);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const V d = v[j] - rough;
      first += d;
      second += d * d;
    }
  }
  const double shift = Team::Sum(static_cast<double>(first)) / n;
  const double variance = Team::Sum(static_cast<double>(second)) / n - shift * shift;
  // In two parts: x loses the first without rounding, so a large mean costs y no digits.
  const double exact_mean = static_cast<double>(rough) + shift;
  const V mean = static_cast<V>(exact_mean);
  const V mean_rest = static_cast<V>(exact_mean - static_cast<double>(mean));
  const V rstd =
      static_cast<V>(1 / sqrt((variance > 0 || variance != variance ? variance : 0) + eps));
  T* const y = static_cast<T*>(a.y) + row * size;
  for (int64_t i = start; i < size; i += step) {
    V v[N], gamma[N], beta[N];
    LoadPack<N>(x + i, v);
    LoadSome<N>(static_cast<const V*>(a.gamma) + i, gamma);
    LoadSome<N>(static_cast<const V*>(a.beta) + i, beta);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = (v[j] - mean - mean_rest) * rstd * gamma[j] + beta[j];
    StorePack<N>(v, y + i);
  }
  if (threadIdx.x == 0) {
    static_cast<V*>(a.mean)[row] = mean;
    static_cast<V*>(a.rstd)[row] = rstd;
  }
}

template <typename T, int N, bool kWarpRow>
__global__ void LayerNormGradInputKernel(LayerNormGradArrays a, int64_t rows, int64_t size) {
  using V = Compute<T>;
  using Team = RowTeam<kWarpRow>;
  const int64_t row = Team::Row();
  if (kWarpRow && row >= rows) return;
  const T* const x = static_cast<const T*>(a.x) + row * size;
  const T* const dy = static_cast<const T*>(a.dy) + row * size;
  const V* const gamma = static_cast<const V*>(a.gamma);
  const V mean = static_cast<const V*>(a.mean)[row], rstd = static_cast<const V*>(a.rstd)[row];
  const int64_t start = int64_t{threadIdx.x} * N, step = int64_t{blockDim.x} * N;
  V sum_g = 0, sum_gx = 0;
  for (int64_t i = start; i < size; i += step) {
    V v[N], d[N], w[N];
    LoadPack<N>(x + i, v);
    LoadPack<N>(dy + i, d);
    LoadSome<N>(gamma + i, w);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const V g = d[j] * w[j];
      sum_g += g;
      sum_gx += g * ((v[j] - mean) * rstd);
    }
  }
  const double n = static_cast<double>(size);
  const V mean_g = static_cast<V>(Team::Sum(static_cast<double>(sum_g)) / n);
  const V mean_gx = static_cast<V>(Team::Sum(static_cast<double>(sum_gx)) / n);
  T* const dx = static_cast<T*>(a.dx) + row * size;
  for (int64_t i = start; i < size; i += step) {
    V v[N], d[N], w[N];
    LoadPack<N>(x + i, v);
    LoadPack<N>(dy + i, d);
    LoadSome<N>(gamma + i, w);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      v[j] = rstd * (d[j] * w[j] - mean_g - (v[j] - mean) * rstd * mean_gx);
    }
    StorePack<N>(v, dx + i);
  }
}

template <typename T>
struct AffineTerm {
  LayerNormGradArrays a;
  int64_t size;
  __device__ void operator()(int64_t row, int64_t column, Compute<T>* dgamma,
                             Compute<T>* dbeta) const {
    using V = Compute<T>;
    const int64_t i = row * size + column;
    const V d = Widen(static_cast<const T*>(a.dy)[i]);
    const V centred = Widen(static_cast<const T*>(a.x)[i]) - static_cast<const V*>(a.mean)[row];
    *dgamma = d * (centred * static_cast<const V*>(a.rstd)[row]);
    *dbeta = d;
  }
};

template <typename V>
__global__ void StoreAffineKernel(ColumnChunks chunks, const PairOfSums* partials, V* dgamma,
                                  V* dbeta) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= chunks.columns) return;
  const PairOfSums sums = AddChunks(chunks, partials, column);
  dgamma[column] = static_cast<V>(sums.a);
  dbeta[column] = static_cast<V>(sums.b);
}

// Calls launch(N, kWarpRow) as integral constants.
template <typename T, typename Launch>
cudaError_t ForRowShape(int64_t size, const Launch& launch) {
  using Wide = std::integral_constant<int, kPackOf<T>>;
  using One = std::integral_constant<int, 1>;
  const bool wide = size % kPackOf<T> == 0;
  if (size <= kLongestWarpRow) {
    return wide ? launch(Wide{}, std::true_type{}) : launch(One{}, std::true_type{});
  }
  return wide ? launch(Wide{}, std::false_type{}) : launch(One{}, std::false_type{});
}

template <typename T, typename Launch>
cudaError_t LaunchRows(int64_t rows, int64_t size, const Launch& launch) {
  return ForRowShape<T>(size, [&](auto n, auto warp_row) {
    const int64_t blocks = warp_row ? (rows + kRowsOfWarps - 1) / kRowsOfWarps : rows;
    const dim3 block = warp_row ? dim3(kWarp, kRowsOfWarps) : dim3(kThreadsOfLongRow);
    return launch(n, warp_row, dim3(static_cast<unsigned>(blocks)), block);
  });
}

template <typename T>
cudaError_t Forward(int64_t rows, int64_t size, double eps, const LayerNormArrays& arrays,
                    cudaStream_t stream) {
  return LaunchRows<T>(rows, size, [&](auto n, auto warp_row, dim3 grid, dim3 block) {
    return LaunchKernel(LayerNormKernel<T, n(), warp_row()>, grid, block, 0, stream, arrays, rows,
                        size, eps);
  });
}

template <typename T>
cudaError_t GradInput(int64_t rows, int64_t size, const LayerNormGradArrays& arrays,
                      cudaStream_t stream) {
  return LaunchRows<T>(rows, size, [&](auto n, auto warp_row, dim3 grid, dim3 block) {
    return LaunchKernel(LayerNormGradInputKernel<T, n(), warp_row()>, grid, block, 0, stream,
                        arrays, rows, size);
  });
}

template <typename T>
cudaError_t GradAffine(const ColumnChunks& chunks, const LayerNormGradArrays& arrays,
                       PairOfSums* partials, cudaStream_t stream) {
  using V = Compute<T>;
  const AffineTerm<T> term{arrays, chunks.columns};
  const cudaError_t error = LaunchSumColumns<V>(term, chunks, partials, stream);
  if (error != cudaSuccess) return error;
  constexpr int kThreads = 128;
  return LaunchKernel(StoreAffineKernel<V>,
                      static_cast<unsigned>((chunks.columns + kThreads - 1) / kThreads), kThreads,
                      0, stream, chunks, partials, static_cast<V*>(arrays.dgamma),
                      static_cast<V*>(arrays.dbeta));
}

}  // namespace

cudaError_t LaunchLayerNorm(DType dtype, int64_t rows, int64_t size, double eps,
                            const LayerNormArrays& arrays, cudaStream_t stream) {
  return ForFloatType(
      dtype, [&](auto zero) { return Forward<decltype(zero)>(rows, size, eps, arrays, stream); });
}

cudaError_t LaunchLayerNormGradInput(DType dtype, int64_t rows, int64_t size,
                                     const LayerNormGradArrays& arrays, cudaStream_t stream) {
  return ForFloatType(
      dtype, [&](auto zero) { return GradInput<decltype(zero)>(rows, size, arrays, stream); });
}

cudaError_t LaunchLayerNormGradAffine(DType dtype, const ColumnChunks& chunks,
                                      const LayerNormGradArrays& arrays, PairOfSums* partials,
                                      cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    return GradAffine<decltype(zero)>(chunks, arrays, partials, stream);
  });
}

}  // namespace halftone::cuda
