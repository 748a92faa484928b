// scaled_dot_product_attention_grad. Source: Dao: "FlashAttention-2",
// https://arxiv.org/abs/2307.08691, algorithm 2; the loop over queries and that over keys are
// launches of their own, so that no sum is shared.
//
// Algorithm: (1) a warp a row: delta = sum(dy y). (2) A block of 128 threads makes 16 rows of dkey
// and dvalue, 128 columns of either, a thread one column; it goes through the queries of all heads
// that meet them, by 32. (3) A block makes 16 rows of dquery likewise, through the keys. Weights are
// made again from the scores and the stats, scores as in attention.cu.
// Shared bytes: 10,560 for f32. Expected bound: arithmetic without matrix units.
#include "halftone/kernels/cuda/ops/attention.cuh"

namespace halftone::cuda {
namespace {

using namespace attention;  // NOLINT: device code of this family

constexpr int kDeltaRows = 4;

template <typename T>
__global__ void __launch_bounds__(kWarp* kDeltaRows)
    DeltaKernel(AttentionParams p, const T* y, const T* dy, Compute<T>* delta) {
  const int64_t row = int64_t{blockIdx.x} * kDeltaRows + threadIdx.y;
  if (row >= p.heads * p.length) return;  // all lanes of a warp alike
  const int64_t first = p.y.First(row / p.length) + row % p.length * p.y.row;
  double sum = 0;
  for (int64_t c = threadIdx.x; c < p.v_columns; c += kWarp) {
    sum += static_cast<double>(Widen(dy[first + c])) * static_cast<double>(Widen(y[first + c]));
  }
  sum = WarpReduce(sum, Add());
  if (threadIdx.x == 0) delta[row] = static_cast<Compute<T>>(sum);
}

// The weight of (query, key) and the gradient of its score.
template <typename V>
struct WeightGradient {
  V dropped, dscore;
};
// What is known of each row of a head.
template <typename V>
struct Rows {
  __device__ Rows(const AttentionParams& p, const AttentionGradArrays& arrays, int64_t row)
      : max(static_cast<const V*>(arrays.stats) + row),
        log_sum(max + p.heads * p.length),
        delta(static_cast<const V*>(arrays.delta) + row) {}
  const V *max, *log_sum, *delta;
};
template <typename V>
__device__ WeightGradient<V> GradientOf(const Head<V>& head, const Rows<V>& rows, V dot, V dweight,
                                        int64_t query, int64_t key) {
  const V score = head.Score(dot, query, key);
  // Beyond the ends, and where a row sees no key (its maximum is -inf).
  if (score == -INFINITY) return {0, 0};
  const V weight = Exp(score - rows.max[query] - rows.log_sum[query]);
  const V keep = head.Keep(query, key);
  return {weight * keep, weight * (keep * dweight - rows.delta[query])};
}

// Units: tiles of keys of each head of key, times chunks of columns.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    KeyGradKernel(AttentionParams p, AttentionGradArrays arrays, int64_t units, int64_t chunks,
                  const kernels::DeviceRunState* state) {
  using V = Compute<T>;
  HT_SHARED(Slices<V>, part, [1]);
  HT_SHARED(V, weights, [kRows][kColumns + 1]);
  HT_SHARED(V, dscores, [kRows][kColumns + 1]);
  const int64_t tiles = Parts(p.keys, kRows);
  const int row_of_thread = RowOfThread();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t chunk = unit % chunks, key_head = unit / chunks / tiles;
    const int64_t first = unit / chunks % tiles * kRows, key = first + row_of_thread;
    const int64_t column = chunk * kChunk + static_cast<int>(threadIdx.x);
    const T* const k = static_cast<const T*>(arrays.k) + p.k.First(key_head) + first * p.k.row;
    const T* const v = static_cast<const T*>(arrays.v) + p.v.First(key_head) + first * p.v.row;
    V dk[kRows] = {}, dv[kRows] = {};
    for (int64_t number = key_head * p.group; number < (key_head + 1) * p.group; ++number) {
      const Head<V> head(p, arrays.mask, number, state->run_count);
      const T* const q = static_cast<const T*>(arrays.q) + p.q.First(number);
      const T* const dy = static_cast<const T*>(arrays.dy) + p.y.First(number);
      const Rows<V> rows(p, arrays, number * p.length);
      // The first tile of queries that sees one of these keys.
      const int64_t from = p.causal ? first / kColumns * kColumns : 0;
      for (int64_t query = from; query < p.length; query += kColumns) {
        V dots[kOwn], dweights[kOwn];
        TileDots<T>({k, p.k.row, p.keys - first}, {q + query * p.q.row, p.q.row, p.length - query},
                    p.columns, part, dots);
        TileDots<T>({v, p.v.row, p.keys - first}, {dy + query * p.y.row, p.y.row, p.length - query},
                    p.v_columns, part, dweights);
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
          const int at = ColumnOfThread(own);
          const auto g = GradientOf(head, rows, dots[own], dweights[own], query + at, key);
          weights[row_of_thread][at] = g.dropped;
          dscores[row_of_thread][at] = g.dscore;
        }
        __syncthreads();
        const int64_t count = p.length - query < kColumns ? p.length - query : kColumns;
        for (int64_t i = 0; i < count; ++i) {
          const V of_q = column < p.columns ? Widen(q[(query + i) * p.q.row + column]) : V{0};
          const V of_dy = column < p.v_columns ? Widen(dy[(query + i) * p.y.row + column]) : V{0};
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            dk[r] += dscores[r][i] * of_q;
            dv[r] += weights[r][i] * of_dy;
          }
        }
        __syncthreads();
      }
    }
    T* const dk_data = static_cast<T*>(arrays.dk) + p.dk.First(key_head) + first * p.dk.row;
    T* const dv_data = static_cast<T*>(arrays.dv) + p.dv.First(key_head) + first * p.dv.row;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= p.keys) continue;
      if (column < p.columns) {
        dk_data[r * p.dk.row + column] = Narrow<T>(dk[r] * static_cast<V>(p.scale));
      }
      if (column < p.v_columns) dv_data[r * p.dv.row + column] = Narrow<T>(dv[r]);
    }
  }
}

// Units: tiles of queries of each head, times chunks of columns.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    QueryGradKernel(AttentionParams p, AttentionGradArrays arrays, int64_t units, int64_t chunks,
                    const kernels::DeviceRunState* state) {
  using V = Compute<T>;
  HT_SHARED(Slices<V>, part, [1]);
  HT_SHARED(V, dscores, [kRows][kColumns + 1]);
  const int64_t tiles = Parts(p.length, kRows);
  const int row_of_thread = RowOfThread();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t chunk = unit % chunks, number = unit / chunks / tiles;
    const int64_t first = unit / chunks % tiles * kRows, query = first + row_of_thread;
    const int64_t column = chunk * kChunk + static_cast<int>(threadIdx.x);
    const int64_t key_head = number / p.group;
    const Head<V> head(p, arrays.mask, number, state->run_count);
    const T* const q = static_cast<const T*>(arrays.q) + p.q.First(number) + first * p.q.row;
    const T* const dy = static_cast<const T*>(arrays.dy) + p.y.First(number) + first * p.y.row;
    const T* const k = static_cast<const T*>(arrays.k) + p.k.First(key_head);
    const T* const v = static_cast<const T*>(arrays.v) + p.v.First(key_head);
    const Rows<V> rows(p, arrays, number * p.length);
    V dq[kRows] = {};
    const int64_t key_end = p.causal && first + kRows < p.keys ? first + kRows : p.keys;
    for (int64_t key = 0; key < key_end; key += kColumns) {
      V dots[kOwn], dweights[kOwn];
      TileDots<T>({q, p.q.row, p.length - first}, {k + key * p.k.row, p.k.row, p.keys - key},
                  p.columns, part, dots);
      TileDots<T>({dy, p.y.row, p.length - first}, {v + key * p.v.row, p.v.row, p.keys - key},
                  p.v_columns, part, dweights);
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        const int at = ColumnOfThread(own);
        dscores[row_of_thread][at] =
            GradientOf(head, rows, dots[own], dweights[own], query, key + at).dscore;
      }
      __syncthreads();
      if (column < p.columns) {
        const int64_t count = p.keys - key < kColumns ? p.keys - key : kColumns;
        for (int64_t j = 0; j < count; ++j) {
          const V of_k = Widen(k[(key + j) * p.k.row + column]);
#pragma unroll
          for (int r = 0; r < kRows; ++r) dq[r] += dscores[r][j] * of_k;
        }
      }
      __syncthreads();
    }
    if (column >= p.columns) continue;
    T* const dq_data = static_cast<T*>(arrays.dq) + p.dq.First(number) + first * p.dq.row + column;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r < p.length) dq_data[r * p.dq.row] = Narrow<T>(dq[r] * static_cast<V>(p.scale));
    }
  }
}

template <typename T>
cudaError_t LaunchTyped(const AttentionParams& p, const AttentionGradArrays& arrays,
                        const kernels::DeviceRunState* state, cudaStream_t stream) {
  const int64_t rows = p.heads * p.length;
  if (rows > 0) {
    const cudaError_t error =
        LaunchKernel(DeltaKernel<T>, dim3(static_cast<unsigned>(Parts(rows, kDeltaRows))),
                     dim3(kWarp, kDeltaRows), 0, stream, p, static_cast<const T*>(arrays.y),
                     static_cast<const T*>(arrays.dy), static_cast<Compute<T>*>(arrays.delta));
    if (error != cudaSuccess) return error;
    const int64_t tiles = Parts(p.length, kRows), chunks = Parts(p.columns, kChunk);
    if (chunks > 0) {
      const cudaError_t of_queries =
          LaunchKernel(QueryGradKernel<T>, Grid(p.heads, tiles, chunks), kThreads, 0, stream, p,
                       arrays, p.heads * tiles * chunks, chunks, state);
      if (of_queries != cudaSuccess) return of_queries;
    }
  }
  const int64_t key_heads = p.heads / p.group, tiles = Parts(p.keys, kRows);
  const int64_t chunks = Parts(p.columns > p.v_columns ? p.columns : p.v_columns, kChunk);
  const int64_t units = key_heads * tiles * chunks;
  if (units == 0) return cudaSuccess;
  return LaunchKernel(KeyGradKernel<T>, Grid(key_heads, tiles, chunks), kThreads, 0, stream, p,
                      arrays, units, chunks, state);
}

}  // namespace

cudaError_t LaunchAttentionGrad(const AttentionParams& params, const AttentionGradArrays& arrays,
                                const kernels::DeviceRunState* state, cudaStream_t stream) {
  return ForFloatType(params.dtype, [&](auto zero) {
    return LaunchTyped<decltype(zero)>(params, arrays, state, stream);
  });
}

}  // namespace halftone::cuda
