// Strided copies.
//
// Algorithm and mapping: a thread of the strided kernel moves 4 elements, a block of 256 threads
// 1,024, in the order of the target, so that its accesses are neighbours; the host widens elements
// to as many as 16 bytes where rows are contiguous on both sides. A fill writes 16 bytes of one
// value. A transposition moves tiles of 32 by 32 through shared memory, a block of 32 by 8 threads
// a tile: it reads along rows and writes along columns. Of 2-byte elements a tile is 64 by 64, so that a
// warp reads and writes 128 bytes of a row as well: a thread takes two rows of a pair of columns, turns
// these 2 by 2 in registers, and leaves them as two words, each of two rows of one column. Pairs are
// one access where rows begin at 4 bytes, else two.
// Shared bytes: 33 * 32 elements for a transposition (8,448 at most), the column beside the tile
// keeping its columns in different banks; 8,192 for 2-byte elements, where word r of column c lies at
// (r + c / 2) % 32 of its 32 words, so that neither the 32 column pairs of a row pair, which a warp
// writes, nor the 32 words of a column, which it reads, share a bank. Else none.
// Bound: memory. Bytes moved: each element read and written once, the minimum.
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/strided.cuh"
#include "halftone/kernels/cuda/runtime/copy.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kElements = 4;
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of threads
constexpr int kWideTile = 2 * kTile;

template <typename T>
__global__ void __launch_bounds__(kThreads) StridedCopyKernel(CopyParams p, const T* from, T* to) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kThreads * kElements);
#pragma unroll
  for (int j = 0; j < kElements; ++j) {
    const int64_t position = tile + j * kThreads + static_cast<int>(threadIdx.x);
    if (position >= p.size) return;
    int64_t at[2];
    Locate(p.index, position, at);
    to[p.to_offset + at[1]] = from[p.from_offset + at[0]];
  }
}

// 16 bytes of one element.
__device__ inline uint4 Repeated(const void* data, int64_t at, int element_size) {
  uint64_t word;
  if (element_size == 8) {
    word = static_cast<const uint64_t*>(data)[at];
  } else if (element_size == 4) {
    word = static_cast<const uint32_t*>(data)[at] * 0x0000000100000001u;
  } else if (element_size == 2) {
    word = static_cast<const uint16_t*>(data)[at] * 0x0001000100010001u;
  } else {
    word = static_cast<const uint8_t*>(data)[at] * 0x0101010101010101u;
  }
  const auto low = static_cast<uint32_t>(word), high = static_cast<uint32_t>(word >> 32);
  return make_uint4(low, high, low, high);
}

__global__ void __launch_bounds__(kThreads) FillKernel(CopyParams p, const void* from, uint4* to) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kThreads * kElements);
#pragma unroll
  for (int j = 0; j < kElements; ++j) {
    const int64_t position = tile + j * kThreads + static_cast<int>(threadIdx.x);
    if (position >= p.size) return;
    int64_t at[2];
    Locate(p.index, position, at);
    to[p.to_offset + at[1]] = Repeated(from, p.from_offset + at[0], p.element_size);
  }
}

template <typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    TransposeKernel(CopyParams p, const T* from, T* to) {
  HT_SHARED(T, tile, [kTile][kTile + 1]);
  const int64_t column_tiles = (p.columns + kTile - 1) / kTile;
  const int64_t row_tiles = (p.rows + kTile - 1) / kTile;
  int64_t block = blockIdx.x;
  const int64_t first_column = block % column_tiles * kTile;
  block /= column_tiles;
  const int64_t first_row = block % row_tiles * kTile;
  int64_t at[2];
  Locate(p.index, block / row_tiles, at);
  from += p.from_offset + at[0];
  to += p.to_offset + at[1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int i = y; i < kTile; i += kTileRows) {
    const int64_t row = first_row + i, column = first_column + x;
    if (row < p.rows && column < p.columns) tile[i][x] = from[row * p.from_stride + column];
  }
  __syncthreads();
#pragma unroll
  for (int i = y; i < kTile; i += kTileRows) {
    const int64_t row = first_row + x, column = first_column + i;
    if (row < p.rows && column < p.columns) to[row + column * p.to_stride] = tile[x][i];
  }
}

using ElementPair = Pack<uint16_t, 2>;

// Two neighbours at `p`, of which `there` (0 to 2) exist; zero for the others.
__device__ inline ElementPair LoadPair(const uint16_t* p, int64_t there, bool whole) {
  if (whole && there >= 2) return *reinterpret_cast<const ElementPair*>(p);
  ElementPair pair{};
  if (there >= 1) pair.v[0] = p[0];
  if (there >= 2) pair.v[1] = p[1];
  return pair;
}
__device__ inline void StorePair(const ElementPair& pair, int64_t there, bool whole, uint16_t* p) {
  if (whole && there >= 2) {
    StoreWhole(pair, p);
  } else {
    if (there >= 1) p[0] = pair.v[0];
    if (there >= 2) p[1] = pair.v[1];
  }
}

__global__ void __launch_bounds__(kTile* kTileRows)
    TransposePairsKernel(CopyParams p, const uint16_t* from, uint16_t* to) {
  HT_SHARED(ElementPair, tile, [kWideTile][kTile]);
  const int64_t column_tiles = (p.columns + kWideTile - 1) / kWideTile;
  const int64_t row_tiles = (p.rows + kWideTile - 1) / kWideTile;
  int64_t block = blockIdx.x;
  const int64_t first_column = block % column_tiles * kWideTile;
  block /= column_tiles;
  const int64_t first_row = block % row_tiles * kWideTile;
  int64_t at[2];
  Locate(p.index, block / row_tiles, at);
  from += p.from_offset + at[0];
  to += p.to_offset + at[1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t column = first_column + 2 * x;
  ElementPair pairs[kTile / kTileRows][2];
#pragma unroll
  for (int j = 0; j < kTile / kTileRows; ++j) {
#pragma unroll
    for (int second = 0; second < 2; ++second) {
      const int64_t row = first_row + 2 * (y + j * kTileRows) + second;
      const int64_t there = row < p.rows ? p.columns - column : 0;
      pairs[j][second] = LoadPair(from + row * p.from_stride + column, there, p.from_pairs);
    }
  }
#pragma unroll
  for (int j = 0; j < kTile / kTileRows; ++j) {
    const int word = (y + j * kTileRows + x) % kTile;  // of columns 2 x and 2 x + 1
#pragma unroll
    for (int second = 0; second < 2; ++second) {
      tile[2 * x + second][word] = {{pairs[j][0].v[second], pairs[j][1].v[second]}};
    }
  }
  __syncthreads();
  const int64_t row = first_row + 2 * x;
#pragma unroll
  for (int i = y; i < kWideTile; i += kTileRows) {
    const int64_t there = first_column + i < p.columns ? p.rows - row : 0;
    StorePair(tile[i][(x + i / 2) % kTile], there, p.to_pairs,
              to + row + (first_column + i) * p.to_stride);
  }
}

// A thread is idle where a tile has no second half.
bool FillsWideTiles(const CopyParams& p) {
  return p.element_size == 2 && p.rows > kTile && p.columns > kTile;
}

cudaError_t LaunchTransposePairs(const CopyParams& p, const void* from, void* to,
                                 cudaStream_t stream) {
  const int64_t tiles =
      (p.columns + kWideTile - 1) / kWideTile * ((p.rows + kWideTile - 1) / kWideTile);
  return LaunchKernel(TransposePairsKernel, dim3(static_cast<unsigned>(p.size * tiles)),
                      dim3(kTile, kTileRows), 0, stream, p, static_cast<const uint16_t*>(from),
                      static_cast<uint16_t*>(to));
}

template <typename T>
cudaError_t LaunchStrided(const CopyParams& p, const void* from, void* to, cudaStream_t stream) {
  constexpr int64_t kBlock = kThreads * kElements;
  return LaunchKernel(StridedCopyKernel<T>,
                      dim3(static_cast<unsigned>((p.size + kBlock - 1) / kBlock)), kThreads, 0,
                      stream, p, static_cast<const T*>(from), static_cast<T*>(to));
}

template <typename T>
cudaError_t LaunchTranspose(const CopyParams& p, const void* from, void* to, cudaStream_t stream) {
  const int64_t tiles = (p.columns + kTile - 1) / kTile * ((p.rows + kTile - 1) / kTile);
  return LaunchKernel(TransposeKernel<T>, dim3(static_cast<unsigned>(p.size * tiles)),
                      dim3(kTile, kTileRows), 0, stream, p, static_cast<const T*>(from),
                      static_cast<T*>(to));
}

}  // namespace

cudaError_t LaunchCopy(const CopyParams& p, const void* from, void* to, cudaStream_t stream) {
  if (p.mode == CopyMode::kFill) {
    constexpr int64_t kBlock = kThreads * kElements;
    return LaunchKernel(FillKernel, dim3(static_cast<unsigned>((p.size + kBlock - 1) / kBlock)),
                        kThreads, 0, stream, p, from, static_cast<uint4*>(to));
  }
  const bool transpose = p.mode == CopyMode::kTranspose;
  if (transpose && FillsWideTiles(p)) return LaunchTransposePairs(p, from, to, stream);
  switch (p.element_size) {
    case 1:
      return transpose ? LaunchTranspose<uint8_t>(p, from, to, stream)
                       : LaunchStrided<uint8_t>(p, from, to, stream);
    case 2:
      return transpose ? LaunchTranspose<uint16_t>(p, from, to, stream)
                       : LaunchStrided<uint16_t>(p, from, to, stream);
    case 4:
      return transpose ? LaunchTranspose<uint32_t>(p, from, to, stream)
                       : LaunchStrided<uint32_t>(p, from, to, stream);
    case 8:
      return transpose ? LaunchTranspose<uint64_t>(p, from, to, stream)
                       : LaunchStrided<uint64_t>(p, from, to, stream);
    default:
      return LaunchStrided<uint4>(p, from, to, stream);
  }
}

}  // namespace halftone::cuda
