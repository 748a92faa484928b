// Algorithm of f8_quantise: a thread rounds 4 neighbours and stores them as one word; a block of 256
// takes the largest magnitude of its 1,024 elements, as bits, in whose order NaN is above all
// numbers, and makes it known by one atomic maximum, which does not depend on the order of blocks.
// Shared bytes: 128. Bound: memory. Bytes moved: the minimum, and 4 a block.
//
// f8_scale_update: one thread, 4 bytes an entry of the history read and written. What finishes a
// product: an element a thread, 4 bytes read and those of y written.
#include <cmath>

#include "halftone/kernels/cuda/device/float8.cuh"
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/f8.h"

namespace halftone::cuda {
namespace {

constexpr int kF8Threads = 256;
constexpr int kF8Pack = 4;

// A finite x saturates even where its product with the scale is no float.
template <__nv_fp8_interpretation_t kFormat>
__device__ uint8_t Quantised(float x, float scale) {
  if (x - x != 0) return NarrowF8<kFormat>(x);
  return __nv_cvt_float_to_fp8(x * scale, __NV_SATFINITE, kFormat);
}

template <typename T, __nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kF8Threads)
    F8QuantiseKernel(int64_t size, const T* x, const float* scale, uint8_t* y, float* inverse,
                     unsigned* amax) {
  const float factor = *scale;
  const int64_t begin =
      (static_cast<int64_t>(blockIdx.x) * kF8Threads + static_cast<int>(threadIdx.x)) * kF8Pack;
  unsigned largest = 0;
  if (begin + kF8Pack <= size) {
    float values[kF8Pack];
    LoadPack(x + begin, values);
    Pack<uint8_t, kF8Pack> codes;
#pragma unroll
    for (int i = 0; i < kF8Pack; ++i) {
      codes.v[i] = Quantised<kFormat>(values[i], factor);
      largest = Max()(largest, BitsOf<unsigned>(fabsf(values[i])));
    }
    StoreWhole(codes, y + begin);
  } else {
    for (int64_t i = begin; i < size; ++i) {
      const float value = Widen(x[i]);
      y[i] = Quantised<kFormat>(value, factor);
      largest = Max()(largest, BitsOf<unsigned>(fabsf(value)));
    }
  }
  largest = BlockReduce(largest, Max(), 0u);
  if (threadIdx.x != 0) return;
  atomicMax(amax, largest);
  if (blockIdx.x == 0) *inverse = 1 / factor;
}

template <typename T>
cudaError_t QuantiseFrom(DType to, int64_t size, const void* x, const float* scale, void* y,
                         float* inverse, unsigned* amax, cudaStream_t stream) {
  constexpr int64_t kTile = int64_t{kF8Threads} * kF8Pack;
  const int64_t tiles = (size + kTile - 1) / kTile;
  const auto blocks = static_cast<unsigned>(tiles < 1 ? 1 : tiles);  // for `inverse`
  const auto launch = [&](auto kernel) {
    return LaunchKernel(kernel, blocks, kF8Threads, 0, stream, size, static_cast<const T*>(x),
                        scale, static_cast<uint8_t*>(y), inverse, amax);
  };
  return to == DType::kF8E4M3 ? launch(F8QuantiseKernel<T, __NV_E4M3>)
                              : launch(F8QuantiseKernel<T, __NV_E5M2>);
}

__global__ void F8ScaleUpdateKernel(F8ScaleRule rule, const float* history, const float* scale,
                                    const float* amax, float* new_history, float* new_scale,
                                    const kernels::DeviceRunState* state) {
  if (state->fault_id != 0) return;
  const float before = *scale, now = *amax;
  float seen = isfinite(now) ? now : 0;
  for (int i = rule.length - 1; i > 0; --i) {
    const float older = history[i - 1];
    new_history[i] = older;
    seen = fmaxf(seen, older);
  }
  new_history[0] = isfinite(now) ? now : 0;
  int exponent = seen > 0 ? ilogb(rule.largest / static_cast<double>(seen)) : 0;
  exponent = exponent < -60 ? -60 : exponent > 60 ? 60 : exponent;
  *new_scale = seen > 0 ? ldexpf(1.0F, exponent) : before;
}

__device__ inline float BiasAt(const void* bias, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF16:
      return Widen(static_cast<const __half*>(bias)[i]);
    case DType::kBF16:
      return Widen(static_cast<const __nv_bfloat16*>(bias)[i]);
    default:
      return static_cast<const float*>(bias)[i];
  }
}

template <typename T>
__global__ void __launch_bounds__(kF8Threads) F8FinishKernel(F8FinishParams p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kF8Threads + static_cast<int>(threadIdx.x);
  if (i >= p.size) return;
  float value = p.product[i] * (*p.a_inverse * *p.b_inverse);
  if (p.bias != nullptr) value += BiasAt(p.bias, p.bias_dtype, i % p.columns);
  static_cast<T*>(p.y)[i] = Narrow<T>(value);
}

}  // namespace

cudaError_t LaunchF8Quantise(DType from, DType to, int64_t size, const void* x, const float* scale,
                             void* y, float* inverse, unsigned* amax, cudaStream_t stream) {
  switch (from) {
    case DType::kF16:
      return QuantiseFrom<__half>(to, size, x, scale, y, inverse, amax, stream);
    case DType::kBF16:
      return QuantiseFrom<__nv_bfloat16>(to, size, x, scale, y, inverse, amax, stream);
    default:
      return QuantiseFrom<float>(to, size, x, scale, y, inverse, amax, stream);
  }
}

cudaError_t LaunchF8ScaleUpdate(const F8ScaleRule& rule, const float* history, const float* scale,
                                const float* amax, float* new_history, float* new_scale,
                                const kernels::DeviceRunState* state, cudaStream_t stream) {
  return LaunchKernel(F8ScaleUpdateKernel, 1, 1, 0, stream, rule, history, scale, amax, new_history,
                      new_scale, state);
}

cudaError_t LaunchF8Finish(const F8FinishParams& params, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((params.size + kF8Threads - 1) / kF8Threads);
  if (blocks == 0) return cudaSuccess;
  const auto launch = [&](auto kernel) {
    return LaunchKernel(kernel, blocks, kF8Threads, 0, stream, params);
  };
  return params.to == DType::kF16    ? launch(F8FinishKernel<__half>)
         : params.to == DType::kBF16 ? launch(F8FinishKernel<__nv_bfloat16>)
                                     : launch(F8FinishKernel<float>);
}

}  // namespace halftone::cuda
