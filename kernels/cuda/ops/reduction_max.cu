// Maxima, exact in every dtype. NaN wins.
#include "halftone/kernels/cuda/ops/reduction.cuh"

namespace halftone::cuda {
namespace {

template <typename T>
struct MaxOp {
  static constexpr bool kFloat = !std::is_integral_v<T>;
  using Narrow = std::conditional_t<kFloat, Compute<T>, int64_t>;
  using Wide = Narrow;
  static __device__ Narrow Start() {
    if constexpr (kFloat) {
      return -INFINITY;
    } else {
      return INT64_MIN;
    }
  }
  static __device__ Wide Nothing() { return Start(); }
  static __device__ Narrow Load(T x) {
    if constexpr (kFloat) {
      return Widen(x);
    } else {
      return x;
    }
  }
  template <typename Acc>
  __device__ Acc operator()(Acc a, Acc b) const {
    return Max()(a, b);
  }
};

}  // namespace

cudaError_t LaunchMax(const Reduction& r, cudaStream_t stream) {
  return LaunchReductionOf<MaxOp>(r, stream);
}

}  // namespace halftone::cuda
