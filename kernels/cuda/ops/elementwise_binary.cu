// Binary elementwise ops in f32, comparisons included. Algorithm and mapping: map.cuh. Shared
// bytes: none. Bound: memory. Bytes moved: each operand read and the result written once, the
// minimum; a broadcast operand comes from the caches after its first use.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {

cudaError_t LaunchF32(Formula formula, const MapParams<2>& params, cudaStream_t stream) {
  namespace f32 = kernels::functors::f32;
  switch (formula) {
#define HT_BINARY(op, Name, ...) \
  case Formula::k##Name:         \
    return LaunchMap<f32::Name##F>(params, stream);
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#include "halftone/graph/ops/support/elementwise.def"
    default:
      return LaunchGradient(formula, params, stream);
  }
}

}  // namespace halftone::cuda
