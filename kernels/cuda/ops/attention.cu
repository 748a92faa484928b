// scaled_dot_product_attention. Source: Dao: "FlashAttention-2", https://arxiv.org/abs/2307.08691,
// algorithm 1.
//
// Algorithm: a block of 128 threads makes 16 rows of y, 128 columns of them, a thread one column.
// It goes through the keys by 32: dot products in slices of 32 columns through shared memory, the
// running maximum and sum of each row (a group of 8 lanes has a row), then the values, which
// neighbouring threads read side by side. More than 128 columns of value make the scores again.
// Shared bytes: 8,640 for f32. Expected bound: arithmetic without matrix units. Bytes moved: q and y
// once, k and v once for every 16 queries (less what the L2 cache holds).
#include "halftone/kernels/cuda/ops/attention.cuh"

namespace halftone::cuda {
namespace {

using namespace attention;  // NOLINT: device code of this family

// Over the kStep neighbouring lanes that share a row.
template <typename V, typename Op>
__device__ V RowReduce(V value, Op op) {
  return WarpReduce<kStep>(value, op);
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    AttentionKernel(AttentionParams p, AttentionArrays arrays, int64_t units,
                    const kernels::DeviceRunState* state) {
  using V = Compute<T>;
  HT_SHARED(Slices<V>, part, [1]);
  HT_SHARED(V, weights, [kRows][kColumns + 1]);
  HT_SHARED(V, shrinks, [kRows]);
  HT_SHARED(V, factors, [kRows]);
  const int64_t tiles = Parts(p.length, kRows),
                chunks = Parts(p.v_columns > 0 ? p.v_columns : 1, kChunk);
  const int row_of_thread = RowOfThread();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t chunk = unit % chunks, tile = unit / chunks % tiles;
    const int64_t number = unit / chunks / tiles, key_head = number / p.group;
    const int64_t first = tile * kRows, query = first + row_of_thread;
    const Head<V> head(p, arrays.mask, number, state->run_count);
    const T* const q = static_cast<const T*>(arrays.q) + p.q.First(number) + first * p.q.row;
    const T* const k = static_cast<const T*>(arrays.k) + p.k.First(key_head);
    const T* const v = static_cast<const T*>(arrays.v) + p.v.First(key_head);
    const int64_t column = chunk * kChunk + static_cast<int>(threadIdx.x);

    V max = -INFINITY, sum = 0, result[kRows] = {};
    const int64_t key_end = p.causal && first + kRows < p.keys ? first + kRows : p.keys;
    for (int64_t key = 0; key < key_end; key += kColumns) {
      V scores[kOwn];
      TileDots<T>({q, p.q.row, p.length - first}, {k + key * p.k.row, p.k.row, p.keys - key},
                  p.columns, part, scores);
      V largest = max;
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        scores[own] = head.Score(scores[own], query, key + ColumnOfThread(own));
        largest = Max()(largest, scores[own]);
      }
      largest = RowReduce(largest, Max());
      // Without a key so far all exponents are -inf, whatever finite number is taken off.
      const V shift = largest == -INFINITY ? V{0} : largest;
      const V shrink = Exp(max - shift);
      V more = 0;
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        const int64_t of_key = key + ColumnOfThread(own);
        const V weight = Exp(scores[own] - shift);
        more += weight;
        weights[row_of_thread][ColumnOfThread(own)] =
            weight == 0 ? weight : weight * head.Keep(query, of_key);
      }
      sum = sum * shrink + RowReduce(more, Add());
      max = largest;
      if (ColumnOfThread(0) == 0) shrinks[row_of_thread] = shrink;
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kRows; ++r) result[r] *= shrinks[r];
      if (column < p.v_columns) {
        const int64_t count = p.keys - key < kColumns ? p.keys - key : kColumns;
        for (int64_t j = 0; j < count; ++j) {
          const V value = Widen(v[(key + j) * p.v.row + column]);
#pragma unroll
          for (int r = 0; r < kRows; ++r) result[r] += weights[r][j] * value;
        }
      }
      __syncthreads();
    }
    if (ColumnOfThread(0) == 0) {
      // No key, no weight: zeros.
      factors[row_of_thread] = sum == 0 ? V{0} : 1 / sum;
      if (chunk == 0 && query < p.length) {
        V* const of_row = static_cast<V*>(arrays.stats) + number * p.length + query;
        of_row[0] = max;
        of_row[p.heads * p.length] = Log(sum);
      }
    }
    __syncthreads();
    if (column < p.v_columns) {
      T* const y = static_cast<T*>(arrays.y) + p.y.First(number) + first * p.y.row + column;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (first + r < p.length) y[r * p.y.row] = Narrow<T>(result[r] * factors[r]);
      }
    }
    __syncthreads();
  }
}

template <typename T>
cudaError_t LaunchTyped(const AttentionParams& p, const AttentionArrays& arrays,
                        const kernels::DeviceRunState* state, cudaStream_t stream) {
  const int64_t tiles = Parts(p.length, kRows);
  const int64_t chunks = Parts(p.v_columns > 0 ? p.v_columns : 1, kChunk);
  return LaunchKernel(AttentionKernel<T>, Grid(p.heads, tiles, chunks), kThreads, 0, stream, p,
                      arrays, p.heads * tiles * chunks, state);
}

}  // namespace

cudaError_t LaunchAttention(const AttentionParams& params, const AttentionArrays& arrays,
                            const kernels::DeviceRunState* state, cudaStream_t stream) {
  if (params.heads * params.length == 0) return cudaSuccess;
  return ForFloatType(params.dtype, [&](auto zero) {
    return LaunchTyped<decltype(zero)>(params, arrays, state, stream);
  });
}

}  // namespace halftone::cuda
