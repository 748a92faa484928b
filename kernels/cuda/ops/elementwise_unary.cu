// Unary elementwise ops in f32. Algorithm and mapping: map.cuh. Shared bytes: none. Bound: memory.
// Bytes moved: each operand read and the result written once, the minimum.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {
namespace {

namespace f32 = kernels::functors::f32;

struct IdentityF {
  __device__ float operator()(float x) const { return x; }
};

}  // namespace

cudaError_t LaunchUnary(Formula formula, const MapParams<1>& params, cudaStream_t stream) {
  switch (formula) {
    case Formula::kRelu:
      return LaunchMap<f32::ReluF>(params, stream);
    case Formula::kSigmoid:
      return LaunchMap<f32::SigmoidF>(params, stream);
    case Formula::kTanh:
      return LaunchMap<f32::TanhF>(params, stream);
    case Formula::kSilu:
      return LaunchMap<f32::SiluF>(params, stream);
    case Formula::kGeluErf:
      return LaunchMap<f32::GeluErfF>(params, stream);
    case Formula::kGeluTanh:
      return LaunchMap<f32::GeluTanhF>(params, stream);
    case Formula::kExp:
      return LaunchMap<f32::ExpF>(params, stream);
    case Formula::kLog:
      return LaunchMap<f32::LogF>(params, stream);
    case Formula::kSqrt:
      return LaunchMap<f32::SqrtF>(params, stream);
    case Formula::kNeg:
      return LaunchMap<f32::NegF>(params, stream);
    case Formula::kAbs:
      return LaunchMap<f32::AbsF>(params, stream);
    case Formula::kFloor:
      return LaunchMap<f32::FloorF>(params, stream);
    case Formula::kCos:
      return LaunchMap<f32::CosF>(params, stream);
    case Formula::kSin:
      return LaunchMap<f32::SinF>(params, stream);
    case Formula::kErf:
      return LaunchMap<f32::ErfF>(params, stream);
    case Formula::kReciprocal:
      return LaunchMap<f32::ReciprocalF>(params, stream);
    case Formula::kIsFinite:
      return LaunchMap<kernels::functors::IsFiniteF>(params, stream);
    case Formula::kIdentity:
      return LaunchMap<IdentityF, 1, /*kBytes=*/true>(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
