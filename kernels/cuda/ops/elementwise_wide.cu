// Elementwise ops in f64 and in whole numbers: f64 is for checking and for a few scalars (learning
// rates, loss scales), whole numbers are counters and indices.
//
// Algorithm: a thread computes 4 elements, a block 1,024, element by element; the formula is
// chosen at run time, alike for all threads, so that one kernel an arity serves all. Shared bytes:
// none. Bound: memory for whole numbers, arithmetic for most functions in f64. Bytes moved: each
// operand read and the result written once, the minimum.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/strided.cuh"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {
namespace {

namespace f64 = kernels::functors::f64;

constexpr int kThreads = 256;
constexpr int kElements = 4;

// A comparison's result as a number of the type that it compared.
struct F64Arithmetic {
  using Value = double;
  __device__ static double Load(const void* x, DType, int64_t i) {
    return static_cast<const double*>(x)[i];
  }
  __device__ static void Store(void* y, DType dtype, int64_t i, double value) {
    if (dtype == DType::kBool) {
      static_cast<uint8_t*>(y)[i] = value != 0;
    } else {
      static_cast<double*>(y)[i] = value;
    }
  }
#define HT_APPLY(Name, ...) \
  case Formula::k##Name:    \
    return f64::With<f64::Name##F>(numbers[0], numbers[1])(__VA_ARGS__);
  __device__ static double Apply(Formula formula, const double* numbers, double x) {
    switch (formula) {
#define HT_UNARY(op, Name, ...) HT_APPLY(Name, x)
#define HT_PREDICATE HT_UNARY
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) HT_APPLY(ByErf, x) HT_APPLY(ByTanh, x)
#include "halftone/graph/ops/support/elementwise.def"
      default:
        return x;
    }
  }
  __device__ static double Apply(Formula formula, const double* numbers, double a, double b) {
    switch (formula) {
#define HT_GRADIENT(op, Name, ...) HT_APPLY(Name, a, b)
#define HT_APPROXIMABLE_GRADIENT(op, ByErf, ByTanh, ...) \
  HT_APPLY(ByErf, a, b) HT_APPLY(ByTanh, a, b)
#define HT_BINARY HT_GRADIENT
#define HT_SCALAR_BINARY HT_GRADIENT
#define HT_COMPARE HT_GRADIENT
#include "halftone/graph/ops/support/elementwise.def"
      default:
        return a;
    }
  }
#undef HT_APPLY
};

// Wraps, in the width of the dtype: its low bits are those of the 64-bit result.
struct WholeArithmetic {
  using Value = int64_t;
  __device__ static int64_t Load(const void* x, DType dtype, int64_t i) {
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
  __device__ static void Store(void* y, DType dtype, int64_t i, int64_t value) {
    switch (dtype) {
      case DType::kI64:
        static_cast<int64_t*>(y)[i] = value;
        return;
      case DType::kI32:
        static_cast<int32_t*>(y)[i] = static_cast<int32_t>(static_cast<uint32_t>(value));
        return;
      default:  // u8, and the 0 or 1 of a bool
        static_cast<uint8_t*>(y)[i] = static_cast<uint8_t>(value);
    }
  }
#define HT_APPLY(Name, ...) \
  case Formula::k##Name:    \
    return kernels::whole::Name##F()(__VA_ARGS__);
  __device__ static int64_t Apply(Formula formula, const double* /*numbers*/, int64_t x) {
    switch (formula) {
#define HT_WHOLE_UNARY(op, Name, ...) HT_APPLY(Name, x)
#define HT_LOGICAL_UNARY HT_WHOLE_UNARY
#include "halftone/graph/ops/support/elementwise.def"
      default:
        return x;
    }
  }
  __device__ static int64_t Apply(Formula formula, const double* /*numbers*/, int64_t a,
                                  int64_t b) {
    switch (formula) {
#define HT_WHOLE_BINARY(op, Name, ...) HT_APPLY(Name, a, b)
#define HT_COMPARE HT_WHOLE_BINARY
#define HT_LOGICAL HT_WHOLE_BINARY
#include "halftone/graph/ops/support/elementwise.def"
      default:
        return a;
    }
  }
#undef HT_APPLY
};

template <typename Arithmetic, int N>
__global__ void __launch_bounds__(kThreads) WideKernel(Formula formula, MapParams<N> p) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kThreads * kElements);
#pragma unroll 1
  for (int j = 0; j < kElements; ++j) {
    const int64_t position = tile + j * kThreads + static_cast<int>(threadIdx.x);
    if (position >= p.size) return;
    int64_t at[N];
    Locate(p.index, position, at);
    typename Arithmetic::Value y;
    const auto first = Arithmetic::Load(p.x[0], p.x_dtypes[0], at[0]);
    if constexpr (N == 1) {
      y = Arithmetic::Apply(formula, p.numbers, first);
    } else {
      y = Arithmetic::Apply(formula, p.numbers, first,
                            Arithmetic::Load(p.x[1], p.x_dtypes[1], at[1]));
    }
    Arithmetic::Store(p.y, p.y_dtype, position, y);
  }
}

template <typename Arithmetic, int N>
cudaError_t LaunchWide(Formula formula, const MapParams<N>& params, cudaStream_t stream) {
  constexpr int64_t kTile = kThreads * kElements;
  const dim3 grid(static_cast<unsigned>((params.size + kTile - 1) / kTile));
  return LaunchKernel(WideKernel<Arithmetic, N>, grid, kThreads, 0, stream, formula, params);
}

}  // namespace

cudaError_t LaunchF64(Formula formula, const MapParams<1>& params, cudaStream_t stream) {
  return LaunchWide<F64Arithmetic>(formula, params, stream);
}
cudaError_t LaunchF64(Formula formula, const MapParams<2>& params, cudaStream_t stream) {
  return LaunchWide<F64Arithmetic>(formula, params, stream);
}
cudaError_t LaunchWhole(Formula formula, const MapParams<1>& params, cudaStream_t stream) {
  return LaunchWide<WholeArithmetic>(formula, params, stream);
}
cudaError_t LaunchWhole(Formula formula, const MapParams<2>& params, cudaStream_t stream) {
  return LaunchWide<WholeArithmetic>(formula, params, stream);
}

}  // namespace halftone::cuda
