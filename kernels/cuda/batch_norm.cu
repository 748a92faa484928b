// batch_norm, its gradient, and batch_norm_inference.
//
// Statistics of a channel: sums of d and d^2 with d = x - (the channel's first value), so that a
// large mean costs no digits; then mean and variance in f64. The gradient needs the sums of dy xhat
// and dy. Both read the tensor once: with neighbouring channels by column_sums.cuh, else a block of
// 256 takes one channel and one chunk of its lines. A second kernel, one thread a channel, adds the
// chunks in order; a third gives y (or dx), 16 bytes an access where a pack has one channel, or
// whole packs of channels.
// Shared: 4 KiB or 256 bytes. Bound: memory; x is read twice, dy too.
#include "halftone/kernels/cuda/batch_norm.h"
#include "halftone/kernels/cuda/column_sums.cuh"
#include "halftone/kernels/cuda/pack.cuh"
#include "halftone/kernels/cuda/reduce.cuh"

namespace halftone::cuda {
namespace {

constexpr int kBlock = 256;

__device__ int64_t ElementOf(const ChannelGeometry& g, int64_t line, int64_t channel) {
  return (line / g.inner * g.channels + channel) * g.inner + line % g.inner;
}

// d and d^2.
template <typename T>
struct DeviationTerm {
  const T* x;
  ChannelGeometry g;
  __device__ Compute<T> Shift(int64_t channel) const { return Widen(x[channel * g.inner]); }
  __device__ void operator()(int64_t line, int64_t channel, Compute<T>* a, Compute<T>* b) const {
    const Compute<T> d = Widen(x[ElementOf(g, line, channel)]) - Shift(channel);
    *a = d;
    *b = d * d;
  }
};

// dy xhat and dy.
template <typename T>
struct GradTerm {
  BatchNormGradArrays a;
  ChannelGeometry g;
  __device__ void operator()(int64_t line, int64_t channel, Compute<T>* dgamma,
                             Compute<T>* dbeta) const {
    using V = Compute<T>;
    const int64_t i = ElementOf(g, line, channel);
    const V d = Widen(static_cast<const T*>(a.dy)[i]);
    const V centred = Widen(static_cast<const T*>(a.x)[i]) - static_cast<const V*>(a.mean)[channel];
    *dgamma = d * (centred * static_cast<const V*>(a.invstd)[channel]);
    *dbeta = d;
  }
};

// Chunks of the lines of channel blockIdx.x whose values are neighbours.
template <typename V, typename Term>
__global__ void SumChannelKernel(Term term, ColumnChunks chunks, PairOfSums* partials) {
  const int64_t channel = blockIdx.x;
  const int64_t first = int64_t{blockIdx.y} * chunks.rows_of_chunk;
  const int64_t end =
      first + chunks.rows_of_chunk < chunks.rows ? first + chunks.rows_of_chunk : chunks.rows;
  V sum_a = 0, sum_b = 0;
  for (int64_t line = first + threadIdx.x; line < end; line += kBlock) {
    V a, b;
    term(line, channel, &a, &b);
    sum_a += a;
    sum_b += b;
  }
  const double total_a = BlockReduce(static_cast<double>(sum_a), Add{}, 0.0);
  const double total_b = BlockReduce(static_cast<double>(sum_b), Add{}, 0.0);
  if (threadIdx.x == 0) {
    partials[int64_t{blockIdx.y} * chunks.columns + channel] = {total_a, total_b};
  }
}

template <typename V, typename Term>
cudaError_t LaunchSumChannels(const Term& term, const ChannelGeometry& g, PairOfSums* partials,
                              cudaStream_t stream) {
  const ColumnChunks chunks = g.chunks();
  if (g.inner == 1) return LaunchSumColumns<V>(term, chunks, partials, stream);
  const dim3 grid(static_cast<unsigned>(g.channels), static_cast<unsigned>(chunks.count));
  return LaunchKernel(SumChannelKernel<V, Term>, grid, kBlock, 0, stream, term, chunks, partials);
}

template <typename T>
__global__ void StatisticsKernel(BatchNormArrays a, ColumnChunks chunks, DeviationTerm<T> term,
                                 const PairOfSums* partials, double eps, double momentum) {
  using V = Compute<T>;
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= chunks.columns) return;
  const PairOfSums sums = AddChunks(chunks, partials, c);
  const double n = static_cast<double>(chunks.rows);
  const double shift = sums.a / n;
  const double mean = static_cast<double>(term.Shift(c)) + shift;
  const double spread = sums.b / n - shift * shift;
  const double variance = spread > 0 || spread != spread ? spread : 0;
  static_cast<V*>(a.save_mean)[c] = static_cast<V>(mean);
  static_cast<V*>(a.save_invstd)[c] = static_cast<V>(1 / sqrt(variance + eps));
  const double old_mean = static_cast<double>(static_cast<const V*>(a.running_mean)[c]);
  const double old_var = static_cast<double>(static_cast<const V*>(a.running_var)[c]);
  static_cast<V*>(a.new_mean)[c] = static_cast<V>((1 - momentum) * old_mean + momentum * mean);
  static_cast<V*>(a.new_var)[c] =
      static_cast<V>((1 - momentum) * old_var + momentum * variance * n / (n - 1));
}

template <typename V>
__global__ void StoreGradSumsKernel(BatchNormGradArrays a, ColumnChunks chunks,
                                    const PairOfSums* partials) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= chunks.columns) return;
  const PairOfSums sums = AddChunks(chunks, partials, c);
  static_cast<V*>(a.dgamma)[c] = static_cast<V>(sums.a);
  static_cast<V*>(a.dbeta)[c] = static_cast<V>(sums.b);
}

// y = (x - mean) invstd gamma + beta of one channel.
template <typename V>
struct Affine {
  V mean, invstd, gamma, beta;
  __device__ V operator()(V x) const { return (x - mean) * invstd * gamma + beta; }
};

template <typename V>
struct TrainingAffine {
  BatchNormArrays a;
  __device__ Affine<V> operator()(int64_t c) const {
    return {static_cast<const V*>(a.save_mean)[c], static_cast<const V*>(a.save_invstd)[c],
            static_cast<const V*>(a.gamma)[c], static_cast<const V*>(a.beta)[c]};
  }
};

template <typename V>
struct InferenceAffine {
  BatchNormArrays a;
  double eps;
  __device__ Affine<V> operator()(int64_t c) const {
    const double var = static_cast<double>(static_cast<const V*>(a.running_var)[c]);
    return {static_cast<const V*>(a.running_mean)[c], static_cast<V>(1 / sqrt(var + eps)),
            static_cast<const V*>(a.gamma)[c], static_cast<const V*>(a.beta)[c]};
  }
};

// A thread has N neighbours: of one channel, or of N channels (inner 1).
template <typename T, int N, typename AffineOf>
__global__ void NormalizeKernel(const T* x, T* y, ChannelGeometry g, int64_t count,
                                AffineOf affine_of) {
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * N;
  if (i >= count) return;
  Compute<T> v[N];
  LoadPack<N>(x + i, v);
  if (g.inner == 1) {
    const int64_t c = i % g.channels;
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = affine_of(c + j)(v[j]);
  } else {
    const auto affine = affine_of(i / g.inner % g.channels);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = affine(v[j]);
  }
  StorePack<N>(v, y + i);
}

// dx = gamma invstd (dy - mean(dy) - xhat mean(dy xhat)).
template <typename T, int N>
__global__ void GradInputKernel(BatchNormGradArrays a, ChannelGeometry g, int64_t count) {
  using V = Compute<T>;
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * N;
  if (i >= count) return;
  V x[N], dy[N];
  LoadPack<N>(static_cast<const T*>(a.x) + i, x);
  LoadPack<N>(static_cast<const T*>(a.dy) + i, dy);
  const V per_line = static_cast<V>(1.0 / static_cast<double>(g.lines));
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int64_t c = g.inner == 1 ? i % g.channels + j : i / g.inner % g.channels;
    const V invstd = static_cast<const V*>(a.invstd)[c];
    const V xhat = (x[j] - static_cast<const V*>(a.mean)[c]) * invstd;
    x[j] = static_cast<const V*>(a.gamma)[c] * invstd *
           (dy[j] - static_cast<const V*>(a.dbeta)[c] * per_line -
            xhat * (static_cast<const V*>(a.dgamma)[c] * per_line));
  }
  StorePack<N>(x, static_cast<T*>(a.dx) + i);
}

unsigned Blocks(int64_t count, int64_t of_block) {
  return static_cast<unsigned>((count + of_block - 1) / of_block);
}

template <typename T>
bool HasWholePacks(const ChannelGeometry& g) {
  return (g.inner == 1 ? g.channels : g.inner) % kPackOf<T> == 0;
}

template <typename T, typename AffineOf>
cudaError_t Normalize(const ChannelGeometry& g, const void* x, void* y, const AffineOf& affine_of,
                      cudaStream_t stream) {
  const int64_t count = g.lines * g.channels;
  const auto* const from = static_cast<const T*>(x);
  auto* const to = static_cast<T*>(y);
  if (HasWholePacks<T>(g)) {
    constexpr int kPack = kPackOf<T>;
    return LaunchKernel(NormalizeKernel<T, kPack, AffineOf>, Blocks(count, kBlock * kPack), kBlock,
                        0, stream, from, to, g, count, affine_of);
  }
  return LaunchKernel(NormalizeKernel<T, 1, AffineOf>, Blocks(count, kBlock), kBlock, 0, stream,
                      from, to, g, count, affine_of);
}

template <typename T>
cudaError_t Forward(const ChannelGeometry& g, double eps, double momentum,
                    const BatchNormArrays& arrays, PairOfSums* partials, cudaStream_t stream) {
  using V = Compute<T>;
  const DeviationTerm<T> term{static_cast<const T*>(arrays.x), g};
  cudaError_t error = LaunchSumChannels<V>(term, g, partials, stream);
  if (error != cudaSuccess) return error;
  error = LaunchKernel(StatisticsKernel<T>, Blocks(g.channels, kBlock), kBlock, 0, stream, arrays,
                       g.chunks(), term, partials, eps, momentum);
  if (error != cudaSuccess) return error;
  return Normalize<T>(g, arrays.x, arrays.y, TrainingAffine<V>{arrays}, stream);
}

template <typename T>
cudaError_t Grad(const ChannelGeometry& g, const BatchNormGradArrays& arrays, PairOfSums* partials,
                 cudaStream_t stream) {
  using V = Compute<T>;
  cudaError_t error = LaunchSumChannels<V>(GradTerm<T>{arrays, g}, g, partials, stream);
  if (error != cudaSuccess) return error;
  error = LaunchKernel(StoreGradSumsKernel<V>, Blocks(g.channels, kBlock), kBlock, 0, stream,
                       arrays, g.chunks(), partials);
  const int64_t count = g.lines * g.channels;
  if (error != cudaSuccess || count == 0) return error;
  if (HasWholePacks<T>(g)) {
    constexpr int kPack = kPackOf<T>;
    return LaunchKernel(GradInputKernel<T, kPack>, Blocks(count, kBlock * kPack), kBlock, 0, stream,
                        arrays, g, count);
  }
  return LaunchKernel(GradInputKernel<T, 1>, Blocks(count, kBlock), kBlock, 0, stream, arrays, g,
                      count);
}

// Calls launch with a null pointer to the element type.
template <typename Launch>
cudaError_t ForType(DType dtype, const Launch& launch) {
  switch (dtype) {
    case DType::kF64:
      return launch(static_cast<double*>(nullptr));
    case DType::kF16:
      return launch(static_cast<__half*>(nullptr));
    case DType::kBF16:
      return launch(static_cast<__nv_bfloat16*>(nullptr));
    default:
      return launch(static_cast<float*>(nullptr));
  }
}

}  // namespace

cudaError_t LaunchBatchNorm(DType dtype, const ChannelGeometry& geometry, double eps,
                            double momentum, const BatchNormArrays& arrays, PairOfSums* partials,
                            cudaStream_t stream) {
  return ForType(dtype, [&](auto* type) {
    return Forward<std::remove_pointer_t<decltype(type)>>(geometry, eps, momentum, arrays, partials,
                                                          stream);
  });
}

cudaError_t LaunchBatchNormInference(DType dtype, const ChannelGeometry& geometry, double eps,
                                     const BatchNormArrays& arrays, cudaStream_t stream) {
  return ForType(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return Normalize<T>(geometry, arrays.x, arrays.y, InferenceAffine<Compute<T>>{arrays, eps},
                        stream);
  });
}

cudaError_t LaunchBatchNormGrad(DType dtype, const ChannelGeometry& geometry,
                                const BatchNormGradArrays& arrays, PairOfSums* partials,
                                cudaStream_t stream) {
  return ForType(dtype, [&](auto* type) {
    return Grad<std::remove_pointer_t<decltype(type)>>(geometry, arrays, partials, stream);
  });
}

}  // namespace halftone::cuda
