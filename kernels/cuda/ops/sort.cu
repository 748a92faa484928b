// Algorithm: entries (key, place) are all different, so the order is unique and stable. Blocks sort
// tiles of up to 1,024 entries of a line in shared memory (bitonic); a line of one tile is then
// written at once. Longer lines: passes merge pairs of runs, each entry finding its rank in the
// other run by bisection, and a last pass writes values and places. An entry is 8 bytes, 16 for
// elements of 8 bytes. Shared bytes: 8,192 or 16,384. Bound: shared memory in the tiles, memory and
// log2(size / 1,024) launches in the merges. Bytes moved: x, values and places once; 16 or 32 an
// element and merge.
#include "halftone/kernels/cuda/device/numeric_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/sort.h"
#include "halftone/kernels/sort_key.h"

namespace halftone::cuda {
namespace {

constexpr int kSortTile = 1024;
constexpr int kSortThreads = 256;

struct WideEntry {
  uint64_t key;
  int64_t place;
};

// Keys of 32 bits share a number with the place.
template <typename T>
using EntryOf = std::conditional_t<sizeof(T) == 8, WideEntry, uint64_t>;

__device__ inline bool Before(uint64_t a, uint64_t b) { return a < b; }
__device__ inline bool Before(const WideEntry& a, const WideEntry& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}
__device__ inline int64_t PlaceOf(uint64_t entry) {
  return static_cast<int64_t>(entry & 0xFFFFFFFFu);
}
__device__ inline int64_t PlaceOf(const WideEntry& entry) { return entry.place; }

// Behind all others.
template <typename Entry>
__device__ Entry NoEntry() {
  if constexpr (std::is_same_v<Entry, WideEntry>) {
    return {UINT64_MAX, INT64_MAX};
  } else {
    return UINT64_MAX;
  }
}

template <typename T>
__device__ EntryOf<T> MakeEntry(T x, int64_t place, bool descending) {
  if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>) {
    return MakeEntry(Widen(x), place, descending);
  } else {
    const auto key = kernels::OrderedKey(x);
    const auto ordered = descending ? ~key : key;
    if constexpr (sizeof(T) == 8) {
      return {ordered, place};
    } else {
      return static_cast<uint64_t>(ordered) << 32 | static_cast<uint64_t>(place);
    }
  }
}

// Element 0 of a line of [outer, size, inner].
__device__ inline int64_t LineStart(const SortParams& p, int64_t line, int64_t size) {
  const Division at = Divide(line, p.inner);
  return at.quotient * size * p.inner.divisor + at.rest;
}

template <typename T, typename Entry>
__device__ void WriteEntry(const SortParams& p, int64_t line, int64_t k, const Entry& entry) {
  const int64_t inner = p.inner.divisor, place = PlaceOf(entry);
  const int64_t to = LineStart(p, line, p.first) + k * inner;
  const int64_t from = LineStart(p, line, p.size) + place * inner;
  static_cast<T*>(p.values)[to] = static_cast<const T*>(p.x)[from];
  p.places[to] = place;
}

// A block of `tile` / 2 threads for each tile of a line; `sorted` null: the line is one tile.
template <typename T>
__global__ void __launch_bounds__(kSortTile / 2)
    SortTilesOfLinesKernel(SortParams p, int tile, int64_t tiles, EntryOf<T>* sorted) {
  using Entry = EntryOf<T>;
  HT_SHARED(Entry, entries, [kSortTile]);
  const int64_t lines = p.outer * p.inner.divisor;
  const int threads = tile / 2, t = static_cast<int>(threadIdx.x);
  for (int64_t task = blockIdx.x; task < lines * tiles; task += gridDim.x) {
    const int64_t line = sorted == nullptr ? task : task / tiles;
    const int64_t begin = sorted == nullptr ? 0 : (task - line * tiles) * tile;
    const T* x = static_cast<const T*>(p.x) + LineStart(p, line, p.size);
    for (int i = t; i < tile; i += threads) {
      const int64_t place = begin + i;
      entries[i] = place < p.size ? MakeEntry(x[place * p.inner.divisor], place, p.descending)
                                  : NoEntry<Entry>();
    }
    __syncthreads();
    // Runs of `run` entries, each ascending or descending by turns, become runs twice as long.
    for (int run = 2; run <= tile; run *= 2) {
      for (int distance = run / 2; distance > 0; distance /= 2) {
        const int low = t / distance * 2 * distance + t % distance;
        const Entry a = entries[low], b = entries[low + distance];
        if (Before(b, a) == ((low & run) == 0)) {
          entries[low] = b;
          entries[low + distance] = a;
        }
        __syncthreads();
      }
    }
    for (int i = t; i < tile; i += threads) {
      if (sorted == nullptr) {
        if (i < p.first) WriteEntry<T>(p, line, i, entries[i]);
      } else if (begin + i < p.size) {
        sorted[line * p.size + begin + i] = entries[i];
      }
    }
    __syncthreads();  // before the next tile is read
  }
}

// Runs of `run` sorted entries of a line (the last may be shorter) become runs of 2 `run`.
template <typename Entry>
__global__ void __launch_bounds__(kSortThreads)
    MergeRunsOfLinesKernel(SortParams p, int64_t count, int64_t run, const Entry* entries,
                           Entry* merged) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kSortThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kSortThreads + threadIdx.x; i < count;
       i += step) {
    const int64_t at = Divide(i, p.by_size).rest, line = i - at;
    const int64_t mine = at & ~(run - 1), pair = at & ~(2 * run - 1);
    const int64_t other = mine == pair ? pair + run : pair;
    int64_t begin = other < p.size ? other : p.size;
    int64_t end = other + run < p.size ? other + run : p.size;
    const int64_t start = begin;
    const Entry entry = entries[i];
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (Before(entries[line + middle], entry)) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    merged[line + pair + (at - mine) + (begin - start)] = entry;
  }
}

template <typename T>
__global__ void __launch_bounds__(kSortThreads)
    WriteLinesKernel(SortParams p, int64_t count, const EntryOf<T>* entries) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kSortThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kSortThreads + threadIdx.x; i < count;
       i += step) {
    const Division place = Divide(i, p.by_first);
    WriteEntry<T>(p, place.quotient, place.rest, entries[place.quotient * p.size + place.rest]);
  }
}

dim3 SortGrid(int64_t blocks) {
  const int64_t most = int64_t{1} << 24;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

template <typename T>
cudaError_t SortAs(const SortParams& p, void* workspace, cudaStream_t stream) {
  using Entry = EntryOf<T>;
  int tile = 64;
  while (tile < kSortTile && tile < p.size) tile *= 2;
  const int64_t tiles = (p.size + tile - 1) / tile, count = p.lines() * p.size;
  auto* entries = tiles == 1 ? nullptr : static_cast<Entry*>(workspace);
  cudaError_t error = LaunchKernel(SortTilesOfLinesKernel<T>, SortGrid(p.lines() * tiles), tile / 2,
                                   0, stream, p, tile, tiles, entries);
  if (tiles == 1) return error;
  Entry* merged = entries + count;
  for (int64_t run = tile; run < p.size && error == cudaSuccess; run *= 2) {
    error = LaunchKernel(MergeRunsOfLinesKernel<Entry>,
                         SortGrid((count + kSortThreads - 1) / kSortThreads), kSortThreads, 0,
                         stream, p, count, run, entries, merged);
    Entry* const free = entries;
    entries = merged;
    merged = free;
  }
  if (error != cudaSuccess) return error;
  const int64_t written = p.lines() * p.first;
  return LaunchKernel(WriteLinesKernel<T>, SortGrid((written + kSortThreads - 1) / kSortThreads),
                      kSortThreads, 0, stream, p, written, entries);
}

}  // namespace

size_t SortWorkspace(const SortParams& p, DType dtype) {
  if (p.size <= kSortTile) return 0;
  const size_t entry = SizeOf(dtype) == 8 ? sizeof(WideEntry) : sizeof(uint64_t);
  return 2 * static_cast<size_t>(p.lines() * p.size) * entry;
}

cudaError_t LaunchSort(const SortParams& p, DType dtype, void* workspace, cudaStream_t stream) {
  return ForNumericType(dtype,
                        [&](auto zero) { return SortAs<decltype(zero)>(p, workspace, stream); });
}

}  // namespace halftone::cuda
