// Gradients of activations in f32. Algorithm and mapping: map.cuh. Shared bytes: none. Bound:
// memory. Bytes moved: each operand read and the result written once, the minimum.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {

cudaError_t LaunchGradient(Formula formula, const MapParams<2>& params, cudaStream_t stream) {
  namespace f32 = kernels::functors::f32;
#define HT_LAUNCH(Name)  \
  case Formula::k##Name: \
    return LaunchMap<f32::Name##F>(params, stream);
  switch (formula) {
#define HT_GRADIENT(op, Name, ...) HT_LAUNCH(Name)
#define HT_APPROXIMABLE_GRADIENT(op, ByErf, ByTanh, ...) HT_LAUNCH(ByErf) HT_LAUNCH(ByTanh)
#include "halftone/graph/ops/support/elementwise.def"
    default:
      return cudaErrorInvalidValue;
  }
#undef HT_LAUNCH
}

}  // namespace halftone::cuda
