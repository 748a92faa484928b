// Gradients of activations in f32. Algorithm and mapping: map.cuh. Shared bytes: none. Bound:
// memory. Bytes moved: each operand read and the result written once, the minimum.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {

cudaError_t LaunchGrad(Formula formula, const MapParams<2>& params, cudaStream_t stream) {
  namespace f32 = kernels::functors::f32;
  switch (formula) {
    case Formula::kReluGrad:
      return LaunchMap<f32::ReluGradF>(params, stream);
    case Formula::kSigmoidGrad:
      return LaunchMap<f32::SigmoidGradF>(params, stream);
    case Formula::kTanhGrad:
      return LaunchMap<f32::TanhGradF>(params, stream);
    case Formula::kSiluGrad:
      return LaunchMap<f32::SiluGradF>(params, stream);
    case Formula::kGeluErfGrad:
      return LaunchMap<f32::GeluErfGradF>(params, stream);
    case Formula::kGeluTanhGrad:
      return LaunchMap<f32::GeluTanhGradF>(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace halftone::cuda
