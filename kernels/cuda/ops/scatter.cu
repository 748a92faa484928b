// Algorithm: (1) keys (row, position) of the picks are sorted: blocks of 512 threads sort 1,024
// keys each in shared memory (bitonic), then passes merge pairs of runs, each key finding its rank
// in the other run by bisection. Keys are all different, so the result is unique and needs no order
// of threads. (2) A thread for each row finds where its keys start. (3) The rows of dx are summed,
// each in order of position, and written once: no clearing pass, no atomics. Mapping of (3):
// row_groups.cuh, in packs of 16 bytes of the wider of the two dtypes where rows allow.
// embedding_grad_rows has in place of (2): blocks of 256 threads count how many of 256 keys are the
// first of their row; then each block adds the counts before its own, numbers its firsts by a scan
// in shared memory, and writes where the keys of each such row start, and its id.
// Shared bytes: 8,192 in the first sort, 1,024 in the scan. Bound: memory in (3), latency of
// log2(picks / 1,024) launches in (1). Bytes moved: each row of dy and of dx once, the minimum; 16 a
// pick and pass for the sort.
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/device/row_groups.cuh"
#include "halftone/kernels/cuda/ops/scatter.h"

namespace halftone::cuda {
namespace {

constexpr int kTile = 1024;
constexpr int kTileThreads = kTile / 2;
constexpr int kThreads = 256;
constexpr int64_t kFlush = 32;  // picks that are added in f32

// Bits that hold 0..n.
int BitsFor(int64_t n) {
  int bits = 0;
  for (; n > 0; n >>= 1) ++bits;
  return bits;
}

unsigned Blocks(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

__global__ void __launch_bounds__(kTileThreads)
    SortTilesKernel(ScatterShape s, int position_bits, const void* indices, uint64_t* keys) {
  HT_SHARED(uint64_t, tile, [kTile]);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTileThreads) {
    uint64_t key = UINT64_MAX;
    if (begin + i < s.picks) {
      int64_t row = IndexAt(indices, s.wide, begin + i);
      if (row < 0 || row >= s.rows || row == s.ignored) row = s.rows;
      key = static_cast<uint64_t>(row) << position_bits | static_cast<uint64_t>(begin + i);
    }
    tile[i] = key;
  }
  __syncthreads();
  // Runs of `run` keys, each ascending or descending by turns, become runs twice as long.
  for (int run = 2; run <= kTile; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      const int t = static_cast<int>(threadIdx.x);
      const int low = t / distance * 2 * distance + t % distance;
      const uint64_t a = tile[low], b = tile[low + distance];
      if ((a > b) == ((low & run) == 0)) {
        tile[low] = b;
        tile[low + distance] = a;
      }
      __syncthreads();
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTileThreads) {
    if (begin + i < s.picks) keys[begin + i] = tile[i];
  }
}

// How many of the sorted keys [begin, end) are below `key`.
__device__ int64_t RankOf(const uint64_t* keys, int64_t begin, int64_t end, uint64_t key) {
  const int64_t start = begin;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (keys[middle] < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin - start;
}

// Runs of `run` sorted keys (a power of two; the last may be shorter) become runs of 2 `run`.
__global__ void __launch_bounds__(kThreads)
    MergeRunsKernel(const uint64_t* keys, int64_t count, int64_t run, uint64_t* merged) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t mine = i & ~(run - 1), pair = i & ~(2 * run - 1);
  const int64_t other = mine == pair ? pair + run : pair;
  const int64_t begin = other < count ? other : count;
  const int64_t end = other + run < count ? other + run : count;
  const uint64_t key = keys[i];
  merged[pair + (i - mine) + RankOf(keys, begin, end, key)] = key;
}

// starts[r]: the first of the sorted keys of row r or a later one; starts[rows] ends the last row.
__global__ void __launch_bounds__(kThreads)
    RowStartsKernel(const uint64_t* keys, int64_t count, int position_bits, int64_t rows,
                    int64_t* starts) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row <= rows) {
    starts[row] = RankOf(keys, 0, count, static_cast<uint64_t>(row) << position_bits);
  }
}

// Whether sorted key i is the first of its row.
__device__ bool IsFirst(const uint64_t* keys, int64_t i, int position_bits, int64_t rows) {
  const uint64_t row = keys[i] >> position_bits;
  return row < static_cast<uint64_t>(rows) && (i == 0 || keys[i - 1] >> position_bits != row);
}

// counts[b]: how many of the keys of block b are the first of their row.
__global__ void __launch_bounds__(kThreads)
    CountFirstsKernel(const uint64_t* keys, int64_t count, int position_bits, int64_t rows,
                      int64_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int first = i < count && IsFirst(keys, i, position_bits, rows) ? 1 : 0;
  const int sum = BlockReduce(first, Add(), 0);
  if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}

// Of the k-th row that has keys: ids[k] and starts[k], the first of its keys. Behind the last such
// row ids are -1 and starts where keys of rows end. `blocks`: of the counts.
__global__ void __launch_bounds__(kThreads)
    NamedRowsKernel(const uint64_t* keys, int64_t count, int position_bits, int64_t rows,
                    const int64_t* counts, int64_t blocks, int64_t* starts, int64_t* ids) {
  HT_SHARED(int, scan, [kThreads]);
  int64_t before = 0, all = 0;
  for (int64_t b = threadIdx.x; b < blocks; b += kThreads) {
    all += counts[b];
    if (b < blockIdx.x) before += counts[b];
  }
  before = BlockReduce(before, Add(), int64_t{0});
  all = BlockReduce(all, Add(), int64_t{0});
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + t;
  const bool first = i < count && IsFirst(keys, i, position_bits, rows);
  scan[t] = first ? 1 : 0;
  __syncthreads();
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const int sum = scan[t] + (t >= distance ? scan[t - distance] : 0);
    __syncthreads();
    scan[t] = sum;
    __syncthreads();
  }
  if (first) {
    const int64_t k = before + scan[t] - 1;
    starts[k] = i;
    ids[k] = static_cast<int64_t>(keys[i] >> position_bits);
  }
  if (i < all || i > count) return;
  starts[i] = RankOf(keys, 0, count, static_cast<uint64_t>(rows) << position_bits);
  if (i < count) ids[i] = -1;
}

template <typename X, typename Y, int kPack>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    SumRowsKernel(ScatterShape s, int position_bits, int lanes, const X* dy, const uint64_t* keys,
                  const int64_t* starts, const Y* base, Y* dx) {
  const uint64_t position_mask = (uint64_t{1} << position_bits) - 1;
  ForRowUnits(s.outer * s.rows, s.inner / kPack, lanes, [&](int64_t i, int64_t unit) {
    const int64_t block = s.outer == 1 ? 0 : i / s.rows;
    const int64_t row = i - block * s.rows;
    const X* const from = dy + block * s.picks * s.inner + unit * kPack;
    const int64_t end = starts[row + 1];
    // f32 over a few picks, f64 over those.
    double total[kPack] = {};
    for (int64_t k = starts[row]; k < end;) {
      const int64_t few = k + kFlush < end ? k + kFlush : end;
      Compute<X> sum[kPack] = {};
#pragma unroll 4
      for (; k < few; ++k) {
        Compute<X> v[kPack];
        LoadPack(from + static_cast<int64_t>(keys[k] & position_mask) * s.inner, v);
#pragma unroll
        for (int c = 0; c < kPack; ++c) sum[c] += v[c];
      }
#pragma unroll
      for (int c = 0; c < kPack; ++c) total[c] += static_cast<double>(sum[c]);
    }
    Compute<X> rounded[kPack];
#pragma unroll
    for (int c = 0; c < kPack; ++c) rounded[c] = static_cast<Compute<X>>(total[c]);
    const int64_t at = i * s.inner + unit * kPack;
    if (base != nullptr) {
      Compute<Y> under[kPack];
      LoadPack(base + at, under);
#pragma unroll
      for (int c = 0; c < kPack; ++c) rounded[c] += under[c];
    }
    StorePack(rounded, dx + at);
  });
}

template <typename X, typename Y>
cudaError_t LaunchSums(const ScatterShape& s, int position_bits, const void* dy,
                       const uint64_t* keys, const int64_t* starts, const void* base, void* dx,
                       cudaStream_t stream) {
  constexpr int kPack = kPackOf<X> < kPackOf<Y> ? kPackOf<X> : kPackOf<Y>;
  const auto bits = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  const bool packs = s.inner % kPack == 0 && (bits(dy) | bits(base) | bits(dx)) % 16 == 0;
  const RowGroups groups(s.outer * s.rows, packs ? s.inner / kPack : s.inner);
  return LaunchKernel(packs ? SumRowsKernel<X, Y, kPack> : SumRowsKernel<X, Y, 1>, groups.grid,
                      kRowThreads, 0, stream, s, position_bits, groups.lanes,
                      static_cast<const X*>(dy), keys, starts, static_cast<const Y*>(base),
                      static_cast<Y*>(dx));
}

cudaError_t LaunchSums(const ScatterShape& s, DType dy_dtype, DType dx_dtype, const void* dy,
                       const uint64_t* keys, const int64_t* starts, const void* base, void* dx,
                       cudaStream_t stream) {
  const int position_bits = BitsFor(s.picks);
  const bool wide = dx_dtype == DType::kF32;
  const auto launch = [&](auto x, auto y) {
    return LaunchSums<decltype(x), decltype(y)>(s, position_bits, dy, keys, starts, base, dx,
                                                stream);
  };
  switch (dy_dtype) {
    case DType::kF64:
      return launch(double(), double());
    case DType::kF16:
      return wide ? launch(__half(), float()) : launch(__half(), __half());
    case DType::kBF16:
      return wide ? launch(__nv_bfloat16(), float()) : launch(__nv_bfloat16(), __nv_bfloat16());
    default:
      return launch(float(), float());
  }
}

// Sorts the keys of the picks in two arrays one behind the other. `sorted`: the one of them that has
// the result.
cudaError_t SortPicks(const ScatterShape& s, const void* indices, uint64_t* keys,
                      const uint64_t** sorted, cudaStream_t stream) {
  uint64_t* merged = keys + s.picks;
  cudaError_t error = cudaSuccess;
  if (s.picks > 0) {
    error = LaunchKernel(SortTilesKernel, static_cast<unsigned>((s.picks + kTile - 1) / kTile),
                         kTileThreads, 0, stream, s, BitsFor(s.picks), indices, keys);
  }
  for (int64_t run = kTile; run < s.picks && error == cudaSuccess; run *= 2) {
    error = LaunchKernel(MergeRunsKernel, Blocks(s.picks), kThreads, 0, stream, keys, s.picks, run,
                         merged);
    uint64_t* const free = keys;
    keys = merged;
    merged = free;
  }
  *sorted = keys;
  return error;
}

}  // namespace

bool CanScatter(const ScatterShape& s) {
  // A grid has 2^31 - 1 blocks at most.
  constexpr int64_t kMax = int64_t{INT32_MAX} * kThreads;
  return BitsFor(s.rows) + BitsFor(s.picks) <= 63 && s.rows < kMax && s.picks < kMax;
}

size_t ScatterWorkspace(const ScatterShape& s) {
  return static_cast<size_t>(2 * s.picks + s.rows + 1) * sizeof(int64_t);
}

cudaError_t LaunchScatter(const ScatterShape& s, DType dy_dtype, DType dx_dtype, const void* dy,
                          const void* indices, const void* base, void* workspace, void* dx,
                          cudaStream_t stream) {
  if (s.outer * s.rows * s.inner == 0) return cudaSuccess;
  auto* const keys = static_cast<uint64_t*>(workspace);
  auto* const starts = reinterpret_cast<int64_t*>(keys + 2 * s.picks);
  const uint64_t* sorted = nullptr;
  cudaError_t error = SortPicks(s, indices, keys, &sorted, stream);
  if (error != cudaSuccess) return error;
  error = LaunchKernel(RowStartsKernel, Blocks(s.rows + 1), kThreads, 0, stream, sorted, s.picks,
                       BitsFor(s.picks), s.rows, starts);
  if (error != cudaSuccess) return error;
  return LaunchSums(s, dy_dtype, dx_dtype, dy, sorted, starts, base, dx, stream);
}

size_t ScatterRowsWorkspace(const ScatterShape& s) {
  return static_cast<size_t>(3 * s.picks + 1 + Blocks(s.picks)) * sizeof(int64_t);
}

cudaError_t LaunchScatterRows(const ScatterShape& s, DType dy_dtype, DType drows_dtype,
                              const void* dy, const void* indices, void* workspace, void* drows,
                              int64_t* ids, cudaStream_t stream) {
  if (s.picks == 0) return cudaSuccess;
  auto* const keys = static_cast<uint64_t*>(workspace);
  auto* const starts = reinterpret_cast<int64_t*>(keys + 2 * s.picks);
  int64_t* const counts = starts + s.picks + 1;
  const int position_bits = BitsFor(s.picks);
  const unsigned blocks = Blocks(s.picks);
  const uint64_t* sorted = nullptr;
  cudaError_t error = SortPicks(s, indices, keys, &sorted, stream);
  if (error != cudaSuccess) return error;
  error = LaunchKernel(CountFirstsKernel, blocks, kThreads, 0, stream, sorted, s.picks,
                       position_bits, s.rows, counts);
  if (error != cudaSuccess) return error;
  error = LaunchKernel(NamedRowsKernel, Blocks(s.picks + 1), kThreads, 0, stream, sorted, s.picks,
                       position_bits, s.rows, counts, static_cast<int64_t>(blocks), starts, ids);
  if (error != cudaSuccess || s.inner == 0) return error;
  ScatterShape named = s;
  named.rows = s.picks;
  return LaunchSums(named, dy_dtype, drows_dtype, dy, sorted, starts, nullptr, drows, stream);
}

}  // namespace halftone::cuda
