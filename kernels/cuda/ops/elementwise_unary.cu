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

cudaError_t LaunchF32(Formula formula, const MapParams<1>& params, cudaStream_t stream) {
#define HT_LAUNCH(Name)  \
  case Formula::k##Name: \
    return LaunchMap<f32::Name##F>(params, stream);
  switch (formula) {
#define HT_UNARY(op, Name, ...) HT_LAUNCH(Name)
#define HT_PREDICATE HT_UNARY
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) HT_LAUNCH(ByErf) HT_LAUNCH(ByTanh)
#include "halftone/graph/ops/support/elementwise.def"
    case Formula::kIdentity:
      return LaunchMap<IdentityF, 1, /*kBytes=*/true>(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
#undef HT_LAUNCH
}

}  // namespace halftone::cuda
