// Sums of every channel of dy, in two passes without atomics, so that the order of additions
// depends on the shape alone.
//
// Pass 1 cuts the positions into parts. Channels-last: a block takes a part and up to 32 packs of
// neighbouring channels (16 bytes each where alignment allows); its 256 threads are as many lanes
// along the channels as are needed and the rest along the positions, whose sums are then added
// through shared memory. Plain: a block takes a part of one channel, its threads stride over it in
// packs. Pass 2: a thread adds the parts of a channel.
// Shared bytes: 256 packs of accumulators: 8,192 for 16-bit dy, 4,096 for the others.
// Expected bound: memory. Bytes moved: dy once, db once, and twice the partial sums, at most 1024 a
// channel of at least 16 positions each.
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/conv_bias.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxParts = 1024;
constexpr int64_t kMaxBlocks = int64_t{1} << 30;

// How a block of pass 1 lies over channels-last dy.
struct Tile {
  int lanes;  // along the channels: a power of two, at most 32
  int rows;   // along the positions
};

__host__ __device__ inline Tile TileOf(int64_t packs) {
  int lanes = 1;
  while (lanes < kWarp && lanes < packs) lanes *= 2;
  return {lanes, kThreads / lanes};
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    ChannelsLastKernel(ConvBiasShape s, int64_t parts, const T* dy, Compute<T>* partial_sums) {
  using Acc = Compute<T>;
  HT_SHARED(Acc, sums, [kThreads][N]);
  const int64_t packs = s.channels / N, positions = s.n * s.plane;
  const Tile tile = TileOf(packs);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % tile.lanes, row = thread / tile.lanes;
  const int64_t column_tiles = (packs + tile.lanes - 1) / tile.lanes;
  for (int64_t b = blockIdx.x; b < parts * column_tiles; b += gridDim.x) {
    const int64_t part = b / column_tiles;
    const int64_t pack = b % column_tiles * tile.lanes + lane;
    const int64_t begin = positions * part / parts, end = positions * (part + 1) / parts;
    Acc sum[N];
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] = Acc{-0.0};  // a sum of -0 alone is -0
    if (pack < packs) {
      for (int64_t p = begin + row; p < end; p += tile.rows) {
        Acc values[N];
        LoadPack<N>(dy + (p * packs + pack) * N, values);
#pragma unroll
        for (int i = 0; i < N; ++i) sum[i] += values[i];
      }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) sums[thread][i] = sum[i];
    __syncthreads();
    for (int half = tile.rows / 2; half > 0; half /= 2) {
      if (row < half) {
#pragma unroll
        for (int i = 0; i < N; ++i) sums[thread][i] += sums[thread + half * tile.lanes][i];
      }
      __syncthreads();
    }
    if (row == 0 && pack < packs) {
#pragma unroll
      for (int i = 0; i < N; ++i) partial_sums[part * s.channels + pack * N + i] = sums[thread][i];
    }
    __syncthreads();
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    PlainKernel(ConvBiasShape s, int64_t parts, const T* dy, Compute<T>* partial_sums) {
  using Acc = Compute<T>;
  const int64_t packs = s.plane / N, all = s.n * packs;
  for (int64_t b = blockIdx.x; b < parts * s.channels; b += gridDim.x) {
    const int64_t part = b / s.channels, channel = b % s.channels;
    const int64_t begin = all * part / parts, end = all * (part + 1) / parts;
    Acc sum = Acc{-0.0};
    for (int64_t i = begin + static_cast<int64_t>(threadIdx.x); i < end; i += kThreads) {
      const int64_t image = i / packs, pack = i % packs;
      Acc values[N];
      LoadPack<N>(dy + (image * s.channels + channel) * s.plane + pack * N, values);
#pragma unroll
      for (int j = 0; j < N; ++j) sum += values[j];
    }
    sum = BlockReduce(sum, Add(), Acc{-0.0});
    if (threadIdx.x == 0) partial_sums[b] = sum;
  }
}

template <typename Acc, typename Out>
__global__ void __launch_bounds__(kThreads)
    AddPartsKernel(const Acc* partial_sums, int64_t channels, int64_t parts, Out* db) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; c < channels;
       c += step) {
    Acc sum = parts > 0 ? Acc{-0.0} : Acc{0};  // of nothing: +0
    for (int64_t part = 0; part < parts; ++part) sum += partial_sums[part * channels + c];
    db[c] = Narrow<Out>(sum);
  }
}

dim3 Blocks(int64_t items) {
  return dim3(static_cast<unsigned>(items < kMaxBlocks ? items : kMaxBlocks));
}

template <typename T, int N>
cudaError_t LaunchParts(const ConvBiasShape& s, int64_t parts, const T* dy, Compute<T>* sums,
                        cudaStream_t stream) {
  if (!s.channels_last) {
    return LaunchKernel(PlainKernel<T, N>, Blocks(parts * s.channels), kThreads, 0, stream, s,
                        parts, dy, sums);
  }
  const int64_t packs = s.channels / N;
  return LaunchKernel(ChannelsLastKernel<T, N>, Blocks(parts * CeilDiv(packs, TileOf(packs).lanes)),
                      kThreads, 0, stream, s, parts, dy, sums);
}

template <typename T, typename Out>
cudaError_t Launch(const ConvBiasShape& s, DType dtype, const void* dy, void* sums, void* db,
                   cudaStream_t stream) {
  using Acc = Compute<T>;
  const int64_t parts = ConvBiasParts(s, dtype);
  if (parts > 0) {
    const T* const from = static_cast<const T*>(dy);
    Acc* const to = static_cast<Acc*>(sums);
    const bool packed = (s.channels_last ? s.channels : s.plane) % kPackOf<T> == 0;
    const cudaError_t error = packed ? LaunchParts<T, kPackOf<T>>(s, parts, from, to, stream)
                                     : LaunchParts<T, 1>(s, parts, from, to, stream);
    if (error != cudaSuccess) return error;
  }
  return LaunchKernel(AddPartsKernel<Acc, Out>, Blocks(CeilDiv(s.channels, kThreads)), kThreads, 0,
                      stream, static_cast<const Acc*>(sums), s.channels, parts,
                      static_cast<Out*>(db));
}

template <typename T>
cudaError_t LaunchLow(const ConvBiasShape& s, DType dtype, DType db_dtype, const void* dy,
                      void* sums, void* db, cudaStream_t stream) {
  return db_dtype == DType::kF32 ? Launch<T, float>(s, dtype, dy, sums, db, stream)
                                 : Launch<T, T>(s, dtype, dy, sums, db, stream);
}

}  // namespace

int64_t ConvBiasParts(const ConvBiasShape& s, DType dy) {
  const int64_t positions = s.n * s.plane;
  if (positions == 0 || s.channels == 0) return 0;
  // Every thread of a block gets about 16 packs.
  const int64_t pack = dy == DType::kF64 ? 2 : dy == DType::kF32 ? 4 : 8;
  const int64_t in_block =
      s.channels_last ? int64_t{16} * TileOf(CeilDiv(s.channels, pack)).rows : 16 * kThreads * pack;
  const int64_t parts = CeilDiv(positions, in_block);
  return parts < kMaxParts ? parts : kMaxParts;
}

cudaError_t LaunchConvBias(const ConvBiasShape& s, DType dy_dtype, DType db_dtype, const void* dy,
                           void* sums, void* db, cudaStream_t stream) {
  if (s.channels == 0) return cudaSuccess;
  switch (dy_dtype) {
    case DType::kF64:
      return Launch<double, double>(s, dy_dtype, dy, sums, db, stream);
    case DType::kF32:
      return Launch<float, float>(s, dy_dtype, dy, sums, db, stream);
    case DType::kF16:
      return LaunchLow<__half>(s, dy_dtype, db_dtype, dy, sums, db, stream);
    case DType::kBF16:
      return LaunchLow<__nv_bfloat16>(s, dy_dtype, db_dtype, dy, sums, db, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
