// batch_norm_grad, in three kernels.
//
// 1. GradSumsKernel: the sums of dy and of dy (x - mean) of each channel over a chunk, in one pass;
//    f32 over kFlush packs, f64 over those; the threads of a block are added in a tree.
// 2. ParametersKernel: a warp a channel adds the chunks and gives dgamma and dbeta.
// 3. GradInputKernel: dx = scale (dy - offset - (x - mean) slope).
// Shared bytes: 32,768 in the first kernel. Expected bound: memory. Bytes moved: x and dy twice, dx
// once; the minimum where they do not fit the L2 cache.
#include "halftone/kernels/cuda/device/channel_walk.cuh"
#include "halftone/kernels/cuda/device/row.cuh"
#include "halftone/kernels/cuda/ops/batch_norm.h"

namespace halftone::cuda {
namespace {

constexpr int kWarpsOfBlock = kTeamBlock / kWarp;
constexpr int kFlush = 32;
constexpr int kPairsAtOnce = 2;  // of packs of 16 bytes
static_assert(kFlush % kPairsAtOnce == 0);

template <typename T, int N>
struct PacksOfBoth {
  Pack<T, N> x, dy;
};

struct GradSums {
  double dy, dyx;
};

template <typename T, int N, bool kColumns>
__global__ void __launch_bounds__(kTeamBlock, 1)
    GradSumsKernel(ChannelCut cut, BatchNormGradArrays a, GradSums* chunks) {
  using V = Compute<T>;
  using Walk = ChannelWalk<N, kColumns>;
  constexpr int kChannels = Walk::kChannels;
  using Two = PacksOfBoth<T, N>;
  HT_SHARED(GradSums, added, [kTeamBlock][kChannels]);
  const T* const x = static_cast<const T*>(a.x);
  const T* const dy = static_cast<const T*>(a.dy);
  const auto load = [x, dy](int64_t at) -> Two {
    return {LoadWhole<N>(x + at), LoadWhole<N>(dy + at)};
  };
  const int64_t blocks = cut.chunks * (kColumns ? cut.tiles : cut.channels);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const Walk walk(cut, b);
    GradSums total[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; ++c) total[c] = {0, 0};
    if (walk.active()) {
      const PerChannel<N, kColumns, V> mean(static_cast<const V*>(a.mean), walk.channel);
      for (int64_t i = walk.first + walk.row; i < walk.end;) {
        V plain[kChannels], scaled[kChannels];
#pragma unroll
        for (int c = 0; c < kChannels; ++c) plain[c] = scaled[c] = 0;
        walk.template ForPacks<kPairsAtOnce>(i, kFlush, load, [&](int64_t, const Two& packs) {
          V v[N], d[N];
          Widen(packs.x, v);
          Widen(packs.dy, d);
#pragma unroll
          for (int e = 0; e < N; ++e) {
            plain[kColumns ? e : 0] += d[e];
            scaled[kColumns ? e : 0] += d[e] * (v[e] - mean[e]);
          }
        });
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          total[c].dy += static_cast<double>(plain[c]);
          total[c].dyx += static_cast<double>(scaled[c]);
        }
      }
    }
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) added[thread][c] = total[c];
    __syncthreads();
    for (int half = walk.rows / 2; half > 0; half /= 2) {
      if (walk.row < half) {
        const int other = thread + half * (kColumns ? cut.lanes : 1);
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          added[thread][c].dy += added[other][c].dy;
          added[thread][c].dyx += added[other][c].dyx;
        }
      }
      __syncthreads();
    }
    if (walk.row == 0 && walk.active()) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        chunks[walk.chunk * cut.channels + walk.channel + c] = added[thread][c];
      }
    }
    __syncthreads();
  }
}

// What the last kernel needs of each channel.
template <typename V>
struct Slopes {
  V *scale, *offset, *slope;
};

template <typename V>
__global__ void __launch_bounds__(kTeamBlock, 1)
    ParametersKernel(ChannelCut cut, BatchNormGradArrays a, const GradSums* chunks, Slopes<V> to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t c = int64_t{blockIdx.x} * kWarpsOfBlock + static_cast<int>(threadIdx.x) / kWarp;
  if (c >= cut.channels) return;  // all lanes of a warp alike
  double dy = 0, dyx = 0;
  for (int64_t k = lane; k < cut.chunks; k += kWarp) {
    dy += chunks[k * cut.channels + c].dy;
    dyx += chunks[k * cut.channels + c].dyx;
  }
  dy = WarpReduce(dy, Add());
  dyx = WarpReduce(dyx, Add());
  if (lane != 0) return;
  const auto n = static_cast<double>(cut.lines);
  const auto invstd = static_cast<double>(static_cast<const V*>(a.invstd)[c]);
  const auto gamma = static_cast<double>(static_cast<const V*>(a.gamma)[c]);
  static_cast<V*>(a.dgamma)[c] = static_cast<V>(dyx * invstd);
  static_cast<V*>(a.dbeta)[c] = static_cast<V>(dy);
  to.scale[c] = static_cast<V>(gamma * invstd);
  to.offset[c] = static_cast<V>(dy / n);
  to.slope[c] = static_cast<V>(dyx / n * invstd * invstd);
}

template <typename T, int N, bool kColumns>
__global__ void __launch_bounds__(kTeamBlock, 1)
    GradInputKernel(ChannelCut cut, BatchNormGradArrays a, Slopes<Compute<T>> slopes) {
  using V = Compute<T>;
  using Two = PacksOfBoth<T, N>;
  const auto load = [&a](int64_t at) -> Two {
    return {LoadWhole<N>(static_cast<const T*>(a.x) + at),
            LoadWhole<N>(static_cast<const T*>(a.dy) + at)};
  };
  const int64_t blocks = cut.chunks * (kColumns ? cut.tiles : cut.channels);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const ChannelWalk<N, kColumns> walk(cut, b);
    if (!walk.active()) continue;
    const PerChannel<N, kColumns, V> mean(static_cast<const V*>(a.mean), walk.channel);
    const PerChannel<N, kColumns, V> scale(slopes.scale, walk.channel);
    const PerChannel<N, kColumns, V> offset(slopes.offset, walk.channel);
    const PerChannel<N, kColumns, V> slope(slopes.slope, walk.channel);
    walk.template ForPacks<kPairsAtOnce>(load, [&](int64_t at, const Two& packs) {
      V v[N], d[N];
      Widen(packs.x, v);
      Widen(packs.dy, d);
#pragma unroll
      for (int e = 0; e < N; ++e) {
        v[e] = scale[e] * (d[e] - offset[e] - (v[e] - mean[e]) * slope[e]);
      }
      StorePack<N>(v, static_cast<T*>(a.dx) + at);
    });
  }
}

template <typename T>
cudaError_t Grad(const ChannelCut& cut, const BatchNormGradArrays& a, void* workspace,
                 cudaStream_t stream) {
  using V = Compute<T>;
  auto* const chunks = static_cast<GradSums*>(workspace);
  V* const rest = reinterpret_cast<V*>(chunks + cut.chunks * cut.channels);
  const Slopes<V> slopes{rest, rest + cut.channels, rest + 2 * cut.channels};
  return ForChannelForm<T>(cut, [&](auto n, auto columns) {
    cudaError_t error = cudaSuccess;
    if (cut.lines > 0) {
      error = LaunchKernel(GradSumsKernel<T, n(), columns()>, ChannelGrid(cut), kTeamBlock, 0,
                           stream, cut, a, chunks);
    }
    if (error != cudaSuccess) return error;
    const auto blocks = static_cast<unsigned>((cut.channels + kWarpsOfBlock - 1) / kWarpsOfBlock);
    error =
        LaunchKernel(ParametersKernel<V>, blocks, kTeamBlock, 0, stream, cut, a, chunks, slopes);
    if (error != cudaSuccess || cut.lines == 0) return error;
    return LaunchKernel(GradInputKernel<T, n(), columns()>, ChannelGrid(cut), kTeamBlock, 0, stream,
                        cut, a, slopes);
  });
}

}  // namespace

cudaError_t LaunchBatchNormGrad(DType dtype, const ChannelCut& cut,
                                const BatchNormGradArrays& arrays, void* workspace,
                                cudaStream_t stream) {
  return ForFloatType(
      dtype, [&](auto zero) { return Grad<decltype(zero)>(cut, arrays, workspace, stream); });
}

}  // namespace halftone::cuda
