// Binary elementwise ops in f32, comparisons included. Algorithm and mapping: map.cuh. Shared
// bytes: none. Bound: memory. Bytes moved: each operand read and the result written once, the
// minimum; a broadcast operand comes from the caches after its first use.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {

cudaError_t LaunchBinary(Formula formula, const MapParams<2>& params, cudaStream_t stream) {
  namespace functors = kernels::functors;
  namespace f32 = kernels::functors::f32;
  switch (formula) {
    case Formula::kAdd:
      return LaunchMap<f32::AddF>(params, stream);
    case Formula::kSub:
      return LaunchMap<f32::SubF>(params, stream);
    case Formula::kMul:
      return LaunchMap<f32::MulF>(params, stream);
    case Formula::kDiv:
      return LaunchMap<f32::DivF>(params, stream);
    case Formula::kMaximum:
      return LaunchMap<f32::MaximumF>(params, stream);
    case Formula::kMinimum:
      return LaunchMap<f32::MinimumF>(params, stream);
    case Formula::kPow:
      return LaunchMap<functors::PowF>(params, stream);
    case Formula::kEqual:
      return LaunchMap<functors::EqualF>(params, stream);
    case Formula::kNotEqual:
      return LaunchMap<functors::NotEqualF>(params, stream);
    case Formula::kLess:
      return LaunchMap<functors::LessF>(params, stream);
    case Formula::kLessEqual:
      return LaunchMap<functors::LessEqualF>(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
