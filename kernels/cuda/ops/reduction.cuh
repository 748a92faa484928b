// Reductions over any axes, templated over the operation. Three kernels:
//
// ReduceRuns (width 1): a team of threads per result and chunk strides over contiguous elements, in
//   packs of 16 bytes where runs are whole packs.
// ReduceColumns (width > 1): a block takes a tile of up to 32 packs of neighbouring columns and a
//   chunk of rows. Its 256 threads are as many lanes along the columns as are needed and the rest
//   along the rows, whose results are then combined through shared memory in a tree.
// CombineChunks: a team per result combines the chunks in order.
// Shared bytes: 512 and 256 packs of accumulators (16,384 at most).
// Expected bound: memory. Bytes moved: x once, y once, and twice the partial results, which are at
// most 1/1000 of x for long reductions.
//
// A thread computes in the narrow accumulator (f32) over kFlush elements and in the wide one (f64)
// over those: a sum over 10^6 elements keeps all of f32's digits.
#pragma once

#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/team.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/reduction.h"

namespace halftone::cuda {

inline constexpr int kFlush = 32;

// Elements of a pack, each with accumulators of its own.
template <typename T>
inline constexpr int kReducePack = kPackOf<T> < kReduceMaxPack ? kPackOf<T> : kReduceMaxPack;

// Op<T>: Narrow and Wide accumulators, Start() that changes nothing it meets, Load(T), operator()
// of two accumulators of either width, and Nothing(), the result over no element.

__device__ inline int64_t OffsetOf(const ReduceAxes& axes, int64_t index) {
  int64_t offset = 0;
  for (int i = 0; i < axes.count; ++i) {
    const Division split = Divide(index, axes.extent[i]);
    offset += split.rest * axes.stride[i];
    index = split.quotient;
  }
  return offset;
}

// Of a chunk.
struct Range {
  int64_t begin, end;
};
__device__ inline Range ChunkOf(int64_t n, int64_t chunk, const WideDivisor& chunks) {
  return {Divide(n * chunk, chunks).quotient, Divide(n * (chunk + 1), chunks).quotient};
}

template <typename Wide>
__device__ void StoreResult(void* y, DType dtype, int64_t i, Wide value) {
  if constexpr (std::is_floating_point_v<Wide>) {
    if (dtype == DType::kF64) static_cast<double*>(y)[i] = value;
    if (dtype == DType::kF32) static_cast<float*>(y)[i] = static_cast<float>(value);
    if (dtype == DType::kF16) static_cast<__half*>(y)[i] = Narrow<__half>(value);
    if (dtype == DType::kBF16) static_cast<__nv_bfloat16*>(y)[i] = Narrow<__nv_bfloat16>(value);
  } else {
    if (dtype == DType::kI64) static_cast<int64_t*>(y)[i] = static_cast<int64_t>(value);
    if (dtype == DType::kI32) static_cast<int32_t*>(y)[i] = static_cast<int32_t>(value);
    if (dtype == DType::kU8) static_cast<uint8_t*>(y)[i] = static_cast<uint8_t>(value);
  }
}

// The result of a chunk: final if there is one alone.
template <typename Wide>
__device__ void StoreChunk(const Reduction& r, int64_t chunk, int64_t result, Wide value) {
  if (r.cut.chunks > 1) {
    static_cast<Wide*>(r.partials)[chunk * r.shape.kept * r.shape.width + result] = value;
  } else {
    if constexpr (std::is_same_v<Wide, double>) value /= r.divisor;
    StoreResult(r.y, r.y_dtype, result, value);
  }
}

template <typename T, int N>
__device__ void LoadElements(const T* p, T (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(p);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = pack.v[i];
}

// Over packs [range.begin, range.end) of a result's runs, those of one thread of a team.
template <typename Op, int N, typename T>
__device__ typename Op::Wide OfRuns(const Reduction& r, const T* x, Range range, const Team& team) {
  const Op op;
  typename Op::Wide total = Op::Start();
  for (int64_t i = range.begin + team.rank; i < range.end;) {
    typename Op::Narrow part[N];
#pragma unroll
    for (int e = 0; e < N; ++e) part[e] = Op::Start();
#pragma unroll 4
    for (int step = 0; step < kFlush && i < range.end; ++step, i += team.size) {
      const T* at = x + i * N;
      if (r.shape.reduced > 1) {
        const Division block = Divide(i, r.cut.by_rows);
        at = x + OffsetOf(r.shape.reduced_axes, block.quotient) + block.rest * N;
      }
      T values[N];
      LoadElements(at, values);
#pragma unroll
      for (int e = 0; e < N; ++e) part[e] = op(part[e], Op::Load(values[e]));
    }
#pragma unroll
    for (int e = 0; e < N; ++e) total = op(total, static_cast<typename Op::Wide>(part[e]));
  }
  return total;
}

template <typename T, typename Op>
__global__ void __launch_bounds__(kTeamBlock, 1) ReduceRuns(Reduction r) {
  using Wide = typename Op::Wide;
  constexpr int kPack = kReducePack<T>;
  const ReduceShape& s = r.shape;
  const int64_t n = s.reduced * s.rows;
  for (Team team(r.cut.team); team.AnyRow(s.kept * r.cut.chunks); team.Next()) {
    const auto [result, chunk] = Divide(team.row, r.cut.by_chunks);
    Wide total = Op::Start();
    if (result < s.kept) {
      const T* x = static_cast<const T*>(r.x) + OffsetOf(s.kept_axes, result);
      if (r.cut.packed) {
        total = OfRuns<Op, kPack>(r, x, ChunkOf(n / kPack, chunk, r.cut.by_chunks), team);
        // What is left of the only run.
        const int64_t at = n / kPack * kPack + team.rank;
        if (chunk == r.cut.chunks - 1) {
          for (int64_t i = at; i < n; i += team.size) {
            total = Op()(total, static_cast<Wide>(Op::Load(x[i])));
          }
        }
      } else {
        total = OfRuns<Op, 1>(r, x, ChunkOf(n, chunk, r.cut.by_chunks), team);
      }
    }
    total = TeamReduce(total, Op(), static_cast<Wide>(Op::Start()), team.size);
    if (team.rank == 0 && result < s.kept) StoreChunk(r, chunk, result, total);
  }
}

template <typename T, typename Op, int N>
__global__ void __launch_bounds__(kTeamBlock, 1) ReduceColumns(Reduction r) {
  using Wide = typename Op::Wide;
  HT_SHARED(Wide, results, [kTeamBlock][N]);
  const Op op;
  const ReduceShape& s = r.shape;
  const int thread = static_cast<int>(threadIdx.x);
  const int lanes = r.cut.lanes, rows = kTeamBlock / lanes;
  const int lane = thread % lanes, row = thread / lanes;
  const int64_t blocks = s.kept * r.cut.chunks * r.cut.tiles;
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const auto [place, tile] = Divide(b, r.cut.by_tiles);
    const auto [group, chunk] = Divide(place, r.cut.by_chunks);
    const int64_t column = (tile * lanes + lane) * N;
    const Range range = ChunkOf(s.reduced * s.rows, chunk, r.cut.by_chunks);
    Wide total[N];
#pragma unroll
    for (int e = 0; e < N; ++e) total[e] = Op::Start();
    if (column < s.width) {
      const T* x = static_cast<const T*>(r.x) + OffsetOf(s.kept_axes, group) + column;
      for (int64_t i = range.begin + row; i < range.end;) {
        typename Op::Narrow part[N];
#pragma unroll
        for (int e = 0; e < N; ++e) part[e] = Op::Start();
#pragma unroll 4
        for (int step = 0; step < kFlush && i < range.end; ++step, i += rows) {
          const T* at = x + i * s.width;
          if (s.reduced > 1) {
            const Division block = Divide(i, r.cut.by_rows);
            at = x + OffsetOf(s.reduced_axes, block.quotient) + block.rest * s.width;
          }
          T values[N];
          LoadElements(at, values);
#pragma unroll
          for (int e = 0; e < N; ++e) part[e] = op(part[e], Op::Load(values[e]));
        }
#pragma unroll
        for (int e = 0; e < N; ++e) total[e] = op(total[e], static_cast<Wide>(part[e]));
      }
    }
#pragma unroll
    for (int e = 0; e < N; ++e) results[thread][e] = total[e];
    __syncthreads();
    for (int half = rows / 2; half > 0; half /= 2) {
      if (row < half) {
#pragma unroll
        for (int e = 0; e < N; ++e) {
          results[thread][e] = op(results[thread][e], results[thread + half * lanes][e]);
        }
      }
      __syncthreads();
    }
    if (row == 0 && column < s.width) {
#pragma unroll
      for (int e = 0; e < N; ++e) {
        StoreChunk(r, chunk, group * s.width + column + e, results[thread][e]);
      }
    }
    __syncthreads();
  }
}

template <typename Op>
__global__ void __launch_bounds__(kTeamBlock, 1) CombineChunks(Reduction r, int team_size) {
  using Wide = typename Op::Wide;
  const auto* partials = static_cast<const Wide*>(r.partials);
  const int64_t results = r.shape.kept * r.shape.width;
  const int64_t chunks = r.shape.rows == 0 ? 0 : r.cut.chunks;
  for (Team team(team_size); team.AnyRow(results); team.Next()) {
    Wide total = chunks == 0 ? Op::Nothing() : Wide(Op::Start());
    if (team.row < results) {
      for (int64_t chunk = team.rank; chunk < chunks; chunk += team.size) {
        total = Op()(total, partials[chunk * results + team.row]);
      }
    }
    total = TeamReduce(total, Op(), total, team.size);
    if (team.rank != 0 || team.row >= results) continue;
    if constexpr (std::is_same_v<Wide, double>) total /= r.divisor;
    StoreResult(r.y, r.y_dtype, team.row, total);
  }
}

template <typename T, template <typename> class Op>
cudaError_t LaunchReduction(const Reduction& r, cudaStream_t stream) {
  const ReduceShape& s = r.shape;
  const int64_t results = s.kept * s.width;
  if (s.rows > 0) {
    cudaError_t error;
    if (s.width == 1) {
      error = LaunchKernel(ReduceRuns<T, Op<T>>, TeamGrid(s.kept * r.cut.chunks, r.cut.team),
                           kTeamBlock, 0, stream, r);
    } else {
      const int64_t blocks = s.kept * r.cut.chunks * r.cut.tiles;
      const auto kernel = r.cut.packed ? ReduceColumns<T, Op<T>, kReducePack<T>>  //
                                       : ReduceColumns<T, Op<T>, 1>;
      error = LaunchKernel(kernel, TeamGrid(blocks, kTeamBlock), kTeamBlock, 0, stream, r);
    }
    if (error != cudaSuccess || r.cut.chunks == 1) return error;
  }
  const int team = s.rows == 0 || results >= 4096 ? 1 : kWarp;
  return LaunchKernel(CombineChunks<Op<T>>, TeamGrid(results, team), kTeamBlock, 0, stream, r,
                      team);
}

template <template <typename> class Op>
cudaError_t LaunchReductionOf(const Reduction& r, cudaStream_t stream) {
  switch (r.x_dtype) {
    case DType::kF64:
      return LaunchReduction<double, Op>(r, stream);
    case DType::kF32:
      return LaunchReduction<float, Op>(r, stream);
    case DType::kF16:
      return LaunchReduction<__half, Op>(r, stream);
    case DType::kBF16:
      return LaunchReduction<__nv_bfloat16, Op>(r, stream);
    case DType::kI64:
      return LaunchReduction<int64_t, Op>(r, stream);
    case DType::kI32:
      return LaunchReduction<int32_t, Op>(r, stream);
    case DType::kU8:
      return LaunchReduction<uint8_t, Op>(r, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
