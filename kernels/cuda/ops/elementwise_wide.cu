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
  __device__ static double Apply(Formula formula, double x) {
    switch (formula) {
      case Formula::kRelu:
        return f64::ReluF()(x);
      case Formula::kSigmoid:
        return f64::SigmoidF()(x);
      case Formula::kTanh:
        return f64::TanhF()(x);
      case Formula::kSilu:
        return f64::SiluF()(x);
      case Formula::kGeluErf:
        return f64::GeluErfF()(x);
      case Formula::kGeluTanh:
        return f64::GeluTanhF()(x);
      case Formula::kExp:
        return f64::ExpF()(x);
      case Formula::kLog:
        return f64::LogF()(x);
      case Formula::kSqrt:
        return f64::SqrtF()(x);
      case Formula::kNeg:
        return f64::NegF()(x);
      case Formula::kAbs:
        return f64::AbsF()(x);
      case Formula::kFloor:
        return f64::FloorF()(x);
      case Formula::kCos:
        return f64::CosF()(x);
      case Formula::kSin:
        return f64::SinF()(x);
      case Formula::kErf:
        return f64::ErfF()(x);
      case Formula::kReciprocal:
        return f64::ReciprocalF()(x);
      default:
        return kernels::functors::IsFiniteF()(x);
    }
  }
  __device__ static double Apply(Formula formula, double a, double b) {
    switch (formula) {
      case Formula::kReluGrad:
        return f64::ReluGradF()(a, b);
      case Formula::kSigmoidGrad:
        return f64::SigmoidGradF()(a, b);
      case Formula::kTanhGrad:
        return f64::TanhGradF()(a, b);
      case Formula::kSiluGrad:
        return f64::SiluGradF()(a, b);
      case Formula::kGeluErfGrad:
        return f64::GeluErfGradF()(a, b);
      case Formula::kGeluTanhGrad:
        return f64::GeluTanhGradF()(a, b);
      case Formula::kAdd:
        return f64::AddF()(a, b);
      case Formula::kSub:
        return f64::SubF()(a, b);
      case Formula::kMul:
        return f64::MulF()(a, b);
      case Formula::kDiv:
        return f64::DivF()(a, b);
      case Formula::kMaximum:
        return f64::MaximumF()(a, b);
      case Formula::kMinimum:
        return f64::MinimumF()(a, b);
      case Formula::kPow:
        return kernels::functors::PowF()(a, b);
      case Formula::kEqual:
        return kernels::functors::EqualF()(a, b);
      case Formula::kNotEqual:
        return kernels::functors::NotEqualF()(a, b);
      case Formula::kLess:
        return kernels::functors::LessF()(a, b);
      default:
        return kernels::functors::LessEqualF()(a, b);
    }
  }
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
  __device__ static int64_t Wrapped(uint64_t x) { return static_cast<int64_t>(x); }
  __device__ static int64_t Apply(Formula formula, int64_t x) {
    switch (formula) {
      case Formula::kNeg:
        return Wrapped(0 - static_cast<uint64_t>(x));
      case Formula::kAbs:
        return x < 0 ? Wrapped(0 - static_cast<uint64_t>(x)) : x;
      default:
        return x == 0;
    }
  }
  __device__ static int64_t Apply(Formula formula, int64_t a, int64_t b) {
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    switch (formula) {
      case Formula::kAdd:
        return Wrapped(ua + ub);
      case Formula::kSub:
        return Wrapped(ua - ub);
      case Formula::kMul:
        return Wrapped(ua * ub);
      case Formula::kMaximum:
        return a > b ? a : b;
      case Formula::kMinimum:
        return a < b ? a : b;
      case Formula::kEqual:
        return a == b;
      case Formula::kNotEqual:
        return a != b;
      case Formula::kLess:
        return a < b;
      case Formula::kLessEqual:
        return a <= b;
      case Formula::kAnd:
        return a != 0 && b != 0;
      default:
        return a != 0 || b != 0;
    }
  }
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
      y = Arithmetic::Apply(formula, first);
    } else {
      y = Arithmetic::Apply(formula, first, Arithmetic::Load(p.x[1], p.x_dtypes[1], at[1]));
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
