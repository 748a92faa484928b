// Strided copies.
//
// Algorithm and mapping: a thread of the strided kernel moves 4 elements, a block of 256 threads
// 1,024, in the order of the target, so that its accesses are neighbours; the host widens elements
// to as many as 16 bytes where rows are contiguous on both sides. A fill writes 16 bytes of one
// value. A transposition moves tiles of 32 by 32 through shared memory, a block of 32 by 8 threads
// a tile: it reads along rows and writes along columns.
// Shared bytes: 33 * 32 elements for a transposition (8,448 at most), else none; the column beside
// the tile keeps its columns in different banks.
// Bound: memory. Bytes moved: each element read and written once, the minimum.
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/device/strided.cuh"
#include "halftone/kernels/cuda/runtime/copy.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kElements = 4;
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of threads

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
