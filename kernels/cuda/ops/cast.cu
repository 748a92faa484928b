// Casts that f32 does not carry: from and to f64, i64, i32 and 8-bit floats, and to u8. (The others are the
// identity of elementwise_unary.cu.)
//
// Algorithm: a thread converts 4 elements, a block 1,024, element by element, through f64 from a
// float and through i64 from the others; the dtypes are looked at for each, alike for all threads.
// Shared bytes: none. Bound: memory. Bytes moved: the minimum.
#include "halftone/kernels/cuda/device/float8.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/ops/cast.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kElements = 4;

template <typename T>
struct Limits;
template <>
struct Limits<int64_t> {
  static constexpr int64_t kLeast = INT64_MIN, kLargest = INT64_MAX;
};
template <>
struct Limits<int32_t> {
  static constexpr int64_t kLeast = INT32_MIN, kLargest = INT32_MAX;
};
template <>
struct Limits<uint8_t> {
  static constexpr int64_t kLeast = 0, kLargest = UINT8_MAX;
};

// Toward zero, saturating; NaN gives 0.
template <typename T>
__device__ T Saturated(double x) {
  constexpr auto kLeast = static_cast<double>(Limits<T>::kLeast);
  // One more than the largest: 2^63 for i64, whose largest is no double.
  constexpr double kEnd = static_cast<double>(Limits<T>::kLargest / 2 + 1) * 2.0;
  if (x >= kEnd) return static_cast<T>(Limits<T>::kLargest);
  if (x <= kLeast) return static_cast<T>(Limits<T>::kLeast);
  return x == x ? static_cast<T>(x) : T{0};
}
template <typename T>
__device__ T Saturated(int64_t x) {
  if (x > Limits<T>::kLargest) return static_cast<T>(Limits<T>::kLargest);
  return static_cast<T>(x < Limits<T>::kLeast ? Limits<T>::kLeast : x);
}

// A double that rounds to any float of 16 or 8 bits as x does: the bits that a double does not hold are
// gathered in its last one (rounding to odd).
__device__ inline double Sticky(double x) { return x; }
__device__ inline double Sticky(int64_t x) {
  constexpr uint64_t kLow = 0x7FF;
  uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  if (magnitude >> 53 != 0) {
    magnitude = (magnitude & ~kLow) | ((magnitude & kLow) != 0 ? kLow + 1 : 0);
  }
  const auto value = static_cast<double>(magnitude);
  return x < 0 ? -value : value;
}

__device__ inline double LoadFloat(const void* x, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF64:
      return static_cast<const double*>(x)[i];
    case DType::kF32:
      return Widen(static_cast<const float*>(x)[i]);
    case DType::kF16:
      return Widen(static_cast<const __half*>(x)[i]);
    case DType::kF8E4M3:
      return WidenF8<__NV_E4M3>(static_cast<const uint8_t*>(x)[i]);
    case DType::kF8E5M2:
      return WidenF8<__NV_E5M2>(static_cast<const uint8_t*>(x)[i]);
    default:
      return Widen(static_cast<const __nv_bfloat16*>(x)[i]);
  }
}
__device__ inline int64_t LoadWhole(const void* x, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kI64:
      return static_cast<const int64_t*>(x)[i];
    case DType::kI32:
      return static_cast<const int32_t*>(x)[i];
    case DType::kU8:
      return static_cast<const uint8_t*>(x)[i];
    default:
      return static_cast<const uint8_t*>(x)[i] != 0;
  }
}

template <typename V>
__device__ void Store(void* y, DType dtype, int64_t i, V x) {
  switch (dtype) {
    case DType::kF64:
      static_cast<double*>(y)[i] = static_cast<double>(x);
      return;
    case DType::kF32:
      static_cast<float*>(y)[i] = static_cast<float>(x);
      return;
    case DType::kF16:
      static_cast<__half*>(y)[i] = Narrow<__half>(Sticky(x));
      return;
    case DType::kBF16:
      static_cast<__nv_bfloat16*>(y)[i] = Narrow<__nv_bfloat16>(Sticky(x));
      return;
    case DType::kI64:
      static_cast<int64_t*>(y)[i] = Saturated<int64_t>(x);
      return;
    case DType::kI32:
      static_cast<int32_t*>(y)[i] = Saturated<int32_t>(x);
      return;
    case DType::kU8:
      static_cast<uint8_t*>(y)[i] = Saturated<uint8_t>(x);
      return;
    case DType::kBool:
      static_cast<uint8_t*>(y)[i] = x != 0;
      return;
    case DType::kF8E4M3:
      static_cast<uint8_t*>(y)[i] = NarrowF8<__NV_E4M3>(Sticky(x));
      return;
    case DType::kF8E5M2:
      static_cast<uint8_t*>(y)[i] = NarrowF8<__NV_E5M2>(Sticky(x));
  }
}

__global__ void __launch_bounds__(kThreads)
    CastKernel(DType from_dtype, bool from_float, DType to_dtype, int64_t size, const void* from,
               void* to) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kThreads * kElements);
#pragma unroll 1
  for (int j = 0; j < kElements; ++j) {
    const int64_t i = tile + j * kThreads + static_cast<int>(threadIdx.x);
    if (i >= size) return;
    if (from_float) {
      Store(to, to_dtype, i, LoadFloat(from, from_dtype, i));
    } else {
      Store(to, to_dtype, i, LoadWhole(from, from_dtype, i));
    }
  }
}

}  // namespace

cudaError_t LaunchCast(DType from_dtype, DType to_dtype, int64_t size, const void* from, void* to,
                       cudaStream_t stream) {
  constexpr int64_t kTile = kThreads * kElements;
  const bool from_float = from_dtype == DType::kF64 || from_dtype == DType::kF32 ||
                          from_dtype == DType::kF16 || from_dtype == DType::kBF16 ||
                          from_dtype == DType::kF8E4M3 || from_dtype == DType::kF8E5M2;
  return LaunchKernel(CastKernel, dim3(static_cast<unsigned>((size + kTile - 1) / kTile)), kThreads,
                      0, stream, from_dtype, from_float, to_dtype, size, from, to);
}

}  // namespace halftone::cuda
