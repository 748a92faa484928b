// Products of matrices by plain tiles: for what the library does not do (batches that repeat an
// operand along some axes only, empty sums) and for f64.
//
// A block of 256 threads makes a tile of 64 x 64 outputs, a thread 4 x 4 of them, 16 apart. It
// steps through k by 16: both operands' slices go to shared memory (in the accumulator's type, one
// column of padding against bank conflicts), then every thread multiplies. Blocks walk over the
// tiles of all matrices of the batch, those of one matrix along its columns first.
// Shared bytes: 2 * 16 * 65 * sizeof(accumulator): 8,320 for f32, 16,640 for f64.
// Expected bound: arithmetic without matrix units (2 shared loads feed 4 multiplications). Bytes
// moved: A n/64 times and B m/64 times instead of once each (less what the L2 cache holds), y once.
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/ops/matmul.h"

namespace halftone::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kSide = 16;                  // threads along either side of a tile
constexpr int kPerThread = kTile / kSide;  // outputs of a thread along either side
constexpr int kThreads = kSide * kSide;
constexpr int64_t kMaxBlocks = int64_t{1} << 30;

__device__ float Widen(float x) { return x; }
__device__ float Widen(__half x) { return __half2float(x); }
__device__ float Widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ double Widen(double x) { return x; }

template <typename To>
__device__ To Narrow(float x);
template <>
__device__ float Narrow<float>(float x) {
  return x;
}
template <>
__device__ __half Narrow<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __nv_bfloat16 Narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <typename To>
__device__ double Narrow(double x) {
  return x;
}

__device__ float MultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double MultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

// Copies a slice of a matrix to shared memory as part[k][i], zero beyond its ends: `i` counts from
// `first` along the output's rows or columns, `k` from `depth`. Neighbouring threads read along the
// axis whose elements are neighbours.
template <typename Acc, typename In>
__device__ void LoadSlice(const In* matrix, int64_t extent, int64_t k_extent, int64_t stride,
                          int64_t k_stride, int64_t first, int64_t depth,
                          Acc (&part)[kDepth][kTile + 1]) {
  const bool along_k = k_stride == 1;
  for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
    const int k = along_k ? e % kDepth : e / kTile;
    const int i = along_k ? e / kDepth : e % kTile;
    Acc value = 0;
    if (first + i < extent && depth + k < k_extent) {
      value = Widen(matrix[(first + i) * stride + (depth + k) * k_stride]);
    }
    part[k][i] = value;
  }
}

template <typename In, typename Out, typename Acc>
__global__ void __launch_bounds__(kThreads) MatmulKernel(MatmulParams p, int64_t tiles) {
  HT_SHARED(Acc, a_part, [kDepth][kTile + 1]);
  HT_SHARED(Acc, b_part, [kDepth][kTile + 1]);
  const int row_of_thread = static_cast<int>(threadIdx.x) / kSide;
  const int column_of_thread = static_cast<int>(threadIdx.x) % kSide;
  const int64_t tile_rows = (p.m + kTile - 1) / kTile, tile_columns = (p.n + kTile - 1) / kTile;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t batch = tile / (tile_rows * tile_columns);
    const int64_t in_matrix = tile - batch * tile_rows * tile_columns;
    const int64_t row = in_matrix / tile_columns * kTile;
    const int64_t column = in_matrix % tile_columns * kTile;
    const In* a = static_cast<const In*>(p.a);
    const In* b = static_cast<const In*>(p.b);
    int64_t rest = batch;
    for (int axis = p.batch_axes - 1; axis >= 0; --axis) {
      const int64_t index = rest % p.batch[axis].extent;
      rest /= p.batch[axis].extent;
      a += index * p.batch[axis].a_stride;
      b += index * p.batch[axis].b_stride;
    }

    Acc sums[kPerThread][kPerThread] = {}, lost[kPerThread][kPerThread] = {};
    for (int64_t depth = 0; depth < p.k; depth += kDepth) {
      LoadSlice<Acc>(a, p.m, p.k, p.a_row_stride, p.a_column_stride, row, depth, a_part);
      LoadSlice<Acc>(b, p.n, p.k, p.b_column_stride, p.b_row_stride, column, depth, b_part);
      __syncthreads();
      Acc part[kPerThread][kPerThread] = {};
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        Acc left[kPerThread], right[kPerThread];
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
          left[i] = a_part[k][row_of_thread + i * kSide];
          right[i] = b_part[k][column_of_thread + i * kSide];
        }
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
          for (int j = 0; j < kPerThread; ++j) {
            part[i][j] = MultiplyAdd(left[i], right[j], part[i][j]);
          }
        }
      }
      // Kahan, "Further remarks on reducing truncation errors", 1965: over slices the error does
      // not grow with k.
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          const Acc next = part[i][j] - lost[i][j], sum = sums[i][j] + next;
          lost[i][j] = (sum - sums[i][j]) - next;
          sums[i][j] = sum;
        }
      }
      __syncthreads();
    }

    Out* const y = static_cast<Out*>(p.y) + batch * p.m * p.n;
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const int64_t to_column = column + column_of_thread + j * kSide;
      if (to_column >= p.n) continue;
      Acc bias = 0;
      if (p.bias != nullptr) {
        bias = p.bias_is_f32 ? static_cast<Acc>(static_cast<const float*>(p.bias)[to_column])
                             : static_cast<Acc>(Widen(static_cast<const In*>(p.bias)[to_column]));
      }
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        const int64_t to_row = row + row_of_thread + i * kSide;
        if (to_row < p.m) y[to_row * p.n + to_column] = Narrow<Out>(sums[i][j] + bias);
      }
    }
  }
}

template <typename In, typename Out, typename Acc>
cudaError_t Launch(const MatmulParams& p, cudaStream_t stream) {
  const int64_t tile_rows = (p.m + kTile - 1) / kTile, tile_columns = (p.n + kTile - 1) / kTile;
  const int64_t tiles = p.batch_count * tile_rows * tile_columns;
  if (tiles == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(tiles < kMaxBlocks ? tiles : kMaxBlocks);
  return LaunchKernel(MatmulKernel<In, Out, Acc>, dim3(blocks), dim3(kThreads), 0, stream, p,
                      tiles);
}

template <typename T>
cudaError_t Launch16(const MatmulParams& p, MatmulDType output, cudaStream_t stream) {
  return output == MatmulDType::kF32 ? Launch<T, float, float>(p, stream)
                                     : Launch<T, T, float>(p, stream);
}

}  // namespace

cudaError_t LaunchMatmul(const MatmulParams& params, MatmulDType operands, MatmulDType output,
                         cudaStream_t stream) {
  switch (operands) {
    case MatmulDType::kF32:
      return Launch<float, float, float>(params, stream);
    case MatmulDType::kF16:
      return Launch16<__half>(params, output, stream);
    case MatmulDType::kBF16:
      return Launch16<__nv_bfloat16>(params, output, stream);
    case MatmulDType::kF64:
      return Launch<double, double, double>(params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace halftone::cuda
