// batch_norm and batch_norm_inference, in three kernels.
//
// 1. MomentsKernel: mean and squared deviations of each channel over a chunk of its elements, in
//    one pass over x. A thread follows Welford's recurrence (Welford, "Note on a method for
//    calculating corrected sums of squares and products", Technometrics 1962) relative to the
//    middle one of three elements of the chunk, so that a large mean costs no digits, nor does an
//    odd element; the threads of a block are merged in a tree (Chan, Golub, LeVeque, "Updating
//    formulae and a pairwise algorithm for computing sample variances", 1979).
// 2. StatisticsKernel: a warp a channel merges the chunks in f64 and gives the statistics.
// 3. NormalizeKernel: y, with the mean in two parts, of which x loses the first without rounding.
// Shared bytes: 24,576 in the first kernel. Expected bound: memory. Bytes moved: x twice, y once;
// the minimum where x does not fit the L2 cache.
#include "halftone/kernels/cuda/device/channel_walk.cuh"
#include "halftone/kernels/cuda/device/row.cuh"
#include "halftone/kernels/cuda/ops/batch_norm.h"

namespace halftone::cuda {
namespace {

constexpr int kWarpsOfBlock = kTeamBlock / kWarp;
constexpr int kAtOnce = 4;  // packs of 16 bytes

template <int N, typename T>
__device__ auto LoadsOf(const T* x) {
  return [x](int64_t at) { return LoadWhole<N>(x + at); };
}

// Of `count` values: their mean, and the sum of squared deviations from it.
template <typename V>
struct Moments {
  V count, mean, m2;
};

template <typename V>
__device__ Moments<V> Merged(const Moments<V>& a, const Moments<V>& b) {
  const V count = a.count + b.count;
  if (count == 0) return a;
  const V share = b.count / count, apart = b.mean - a.mean;
  return {count, a.mean + apart * share, a.m2 + b.m2 + apart * apart * (a.count * share)};
}

struct ChunkMoments {
  double mean, m2;
};

template <typename V>
__device__ V MiddleOf(V a, V b, V c) {
  const V low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

template <typename T, int N, bool kColumns>
__global__ void __launch_bounds__(kTeamBlock, 1)
    MomentsKernel(ChannelCut cut, const T* x, ChunkMoments* chunks) {
  using V = Compute<T>;
  using Walk = ChannelWalk<N, kColumns>;
  constexpr int kChannels = Walk::kChannels;
  HT_SHARED(Moments<V>, merged, [kTeamBlock][kChannels]);
  const int64_t blocks = cut.chunks * (kColumns ? cut.tiles : cut.channels);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const Walk walk(cut, b);
    V base[N], mean[N], m2[N], count = 0;
#pragma unroll
    for (int e = 0; e < N; ++e) base[e] = mean[e] = m2[e] = 0;
    if (walk.active()) {
      V middle[N], last[N];
      LoadPack<N>(x + walk.Offset(walk.first), base);
      LoadPack<N>(x + walk.Offset((walk.first + walk.end) / 2), middle);
      LoadPack<N>(x + walk.Offset(walk.end - 1), last);
#pragma unroll
      for (int e = 0; e < N; ++e) base[e] = MiddleOf(base[e], middle[e], last[e]);
      if constexpr (!kColumns) {
#pragma unroll
        for (int e = 1; e < N; ++e) base[e] = base[0];
      }
      walk.template ForPacks<kAtOnce>(LoadsOf<N>(x), [&](int64_t, const Pack<T, N>& pack) {
        V v[N];
        Widen(pack, v);
        count += 1;
        const V share = 1 / count;
#pragma unroll
        for (int e = 0; e < N; ++e) {
          const V d = v[e] - base[e], apart = d - mean[e];
          mean[e] += apart * share;
          m2[e] += apart * (d - mean[e]);
        }
      });
    }
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kColumns) {
#pragma unroll
      for (int e = 0; e < N; ++e) merged[thread][e] = {count, mean[e], m2[e]};
    } else {
      Moments<V> all{count, mean[0], m2[0]};
#pragma unroll
      for (int e = 1; e < N; ++e) all = Merged(all, {count, mean[e], m2[e]});
      merged[thread][0] = all;
    }
    __syncthreads();
    for (int half = walk.rows / 2; half > 0; half /= 2) {
      if (walk.row < half) {
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          merged[thread][c] =
              Merged(merged[thread][c], merged[thread + half * (kColumns ? cut.lanes : 1)][c]);
        }
      }
      __syncthreads();
    }
    if (walk.row == 0 && walk.active()) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const Moments<V> all = merged[thread][c];
        chunks[walk.chunk * cut.channels + walk.channel + c] = {
            static_cast<double>(base[c]) + static_cast<double>(all.mean),
            static_cast<double>(all.m2)};
      }
    }
    __syncthreads();
  }
}

// What the last kernel needs of each channel.
template <typename V>
struct Affine {
  V *mean_high, *mean_low, *scale;
};

template <typename V>
Affine<V> AffineIn(void* workspace, const ChannelCut& cut) {
  V* const first = static_cast<V*>(workspace);
  return {first, first + cut.channels, first + 2 * cut.channels};
}

template <typename V>
__device__ void StoreAffine(const Affine<V>& to, int64_t c, double mean, double invstd, V gamma) {
  to.mean_high[c] = static_cast<V>(mean);
  to.mean_low[c] = static_cast<V>(mean - static_cast<double>(to.mean_high[c]));
  to.scale[c] = static_cast<V>(invstd * static_cast<double>(gamma));
}

template <typename V, int N, bool kColumns>
__global__ void __launch_bounds__(kTeamBlock, 1)
    StatisticsKernel(ChannelCut cut, BatchNormArrays a, double eps, double momentum,
                     const ChunkMoments* chunks, Affine<V> affine) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t c = int64_t{blockIdx.x} * kWarpsOfBlock + static_cast<int>(threadIdx.x) / kWarp;
  if (c >= cut.channels) return;  // all lanes of a warp alike
  const auto n = static_cast<double>(cut.lines);
  double sum = 0, m2 = 0;
  for (int64_t k = lane; k < cut.chunks; k += kWarp) {
    const auto count = static_cast<double>(ElementsOfChunk<N, kColumns>(cut, k));
    sum += chunks[k * cut.channels + c].mean * count;
  }
  const double mean = WarpReduce(sum, Add()) / n;
  for (int64_t k = lane; k < cut.chunks; k += kWarp) {
    const auto count = static_cast<double>(ElementsOfChunk<N, kColumns>(cut, k));
    const ChunkMoments chunk = chunks[k * cut.channels + c];
    const double apart = chunk.mean - mean;
    m2 += chunk.m2 + apart * apart * count;
  }
  const double variance = WarpReduce(m2, Add()) / n;
  if (lane != 0) return;
  const double invstd = 1 / sqrt(variance + eps);
  StoreAffine(affine, c, mean, invstd, static_cast<const V*>(a.gamma)[c]);
  static_cast<V*>(a.save_mean)[c] = static_cast<V>(mean);
  static_cast<V*>(a.save_invstd)[c] = static_cast<V>(invstd);
  const auto old_mean = static_cast<double>(static_cast<const V*>(a.running_mean)[c]);
  const auto old_var = static_cast<double>(static_cast<const V*>(a.running_var)[c]);
  static_cast<V*>(a.new_mean)[c] = static_cast<V>((1 - momentum) * old_mean + momentum * mean);
  static_cast<V*>(a.new_var)[c] =
      static_cast<V>((1 - momentum) * old_var + momentum * variance * n / (n - 1));
}

template <typename V>
__global__ void __launch_bounds__(kTeamBlock, 1)
    InferenceKernel(int64_t channels, BatchNormArrays a, double eps, Affine<V> affine) {
  const int64_t c = int64_t{blockIdx.x} * kTeamBlock + threadIdx.x;
  if (c >= channels) return;
  const auto var = static_cast<double>(static_cast<const V*>(a.running_var)[c]);
  StoreAffine(affine, c, static_cast<double>(static_cast<const V*>(a.running_mean)[c]),
              1 / sqrt(var + eps), static_cast<const V*>(a.gamma)[c]);
}

template <typename T, int N, bool kColumns>
__global__ void __launch_bounds__(kTeamBlock, 1)
    NormalizeKernel(ChannelCut cut, const T* x, const Compute<T>* beta, Affine<Compute<T>> affine,
                    T* y) {
  using V = Compute<T>;
  const int64_t blocks = cut.chunks * (kColumns ? cut.tiles : cut.channels);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const ChannelWalk<N, kColumns> walk(cut, b);
    if (!walk.active()) continue;
    const PerChannel<N, kColumns, V> high(affine.mean_high, walk.channel);
    const PerChannel<N, kColumns, V> low(affine.mean_low, walk.channel);
    const PerChannel<N, kColumns, V> scale(affine.scale, walk.channel);
    const PerChannel<N, kColumns, V> shift(beta, walk.channel);
    walk.template ForPacks<kAtOnce>(LoadsOf<N>(x), [&](int64_t at, const Pack<T, N>& pack) {
      V v[N];
      Widen(pack, v);
#pragma unroll
      for (int e = 0; e < N; ++e) v[e] = (v[e] - high[e] - low[e]) * scale[e] + shift[e];
      StorePack<N>(v, y + at);
    });
  }
}

dim3 BlocksOf(int64_t items, int64_t in_block) {
  return dim3(static_cast<unsigned>((items + in_block - 1) / in_block));
}

template <typename T>
cudaError_t Normalize(const ChannelCut& cut, const BatchNormArrays& a,
                      const Affine<Compute<T>>& affine, cudaStream_t stream) {
  return ForChannelForm<T>(cut, [&](auto n, auto columns) {
    return LaunchKernel(NormalizeKernel<T, n(), columns()>, ChannelGrid(cut), kTeamBlock, 0, stream,
                        cut, static_cast<const T*>(a.x), static_cast<const Compute<T>*>(a.beta),
                        affine, static_cast<T*>(a.y));
  });
}

template <typename T>
cudaError_t Statistics(const ChannelCut& cut, double eps, double momentum, const BatchNormArrays& a,
                       const Affine<Compute<T>>& affine, ChunkMoments* chunks,
                       cudaStream_t stream) {
  return ForChannelForm<T>(cut, [&](auto n, auto columns) {
    const cudaError_t first =
        LaunchKernel(MomentsKernel<T, n(), columns()>, ChannelGrid(cut), kTeamBlock, 0, stream, cut,
                     static_cast<const T*>(a.x), chunks);
    if (first != cudaSuccess) return first;
    return LaunchKernel(StatisticsKernel<Compute<T>, n(), columns()>,
                        BlocksOf(cut.channels, kWarpsOfBlock), kTeamBlock, 0, stream, cut, a, eps,
                        momentum, chunks, affine);
  });
}

template <typename T>
cudaError_t Forward(const ChannelCut& cut, double eps, double momentum, const BatchNormArrays& a,
                    void* workspace, cudaStream_t stream) {
  auto* const chunks = static_cast<ChunkMoments*>(workspace);
  const auto affine = AffineIn<Compute<T>>(chunks + cut.chunks * cut.channels, cut);
  const cudaError_t error = Statistics<T>(cut, eps, momentum, a, affine, chunks, stream);
  if (error != cudaSuccess) return error;
  return Normalize<T>(cut, a, affine, stream);
}

}  // namespace

cudaError_t LaunchBatchNorm(DType dtype, const ChannelCut& cut, double eps, double momentum,
                            const BatchNormArrays& arrays, void* workspace, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    return Forward<decltype(zero)>(cut, eps, momentum, arrays, workspace, stream);
  });
}

cudaError_t LaunchBatchNormStats(DType dtype, const ChannelCut& cut, double eps, double momentum,
                                 const BatchNormArrays& arrays, void* low, void* scale,
                                 void* workspace, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using V = Compute<decltype(zero)>;
    auto* const chunks = static_cast<ChunkMoments*>(workspace);
    // The mean's first part is save_mean.
    Affine<V> affine = AffineIn<V>(chunks + cut.chunks * cut.channels, cut);
    affine.mean_low = static_cast<V*>(low);
    affine.scale = static_cast<V*>(scale);
    return Statistics<decltype(zero)>(cut, eps, momentum, arrays, affine, chunks, stream);
  });
}

cudaError_t LaunchBatchNormApply(DType dtype, const ChannelCut& cut, const void* x,
                                 const BatchNormNumbers& numbers, void* y, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using V = Compute<decltype(zero)>;
    const auto number = [](const void* of) { return static_cast<V*>(const_cast<void*>(of)); };
    BatchNormArrays arrays{};
    arrays.x = x;
    arrays.beta = numbers.shift;
    arrays.y = y;
    const Affine<V> affine{number(numbers.mean), number(numbers.low), number(numbers.scale)};
    return Normalize<decltype(zero)>(cut, arrays, affine, stream);
  });
}

cudaError_t LaunchBatchNormInference(DType dtype, const ChannelCut& cut, double eps,
                                     const BatchNormArrays& arrays, void* workspace,
                                     cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    const Affine<Compute<T>> affine = AffineIn<Compute<T>>(workspace, cut);
    const cudaError_t error =
        LaunchKernel(InferenceKernel<Compute<T>>, BlocksOf(cut.channels, kTeamBlock), kTeamBlock, 0,
                     stream, cut.channels, arrays, eps, affine);
    if (error != cudaSuccess) return error;
    return Normalize<T>(cut, arrays, affine, stream);
  });
}

}  // namespace halftone::cuda
