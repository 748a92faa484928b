// Sums: f32 and f64 as reduction.cuh says; integers modulo 2^64, of which the low bits are kept.
#include "halftone/kernels/cuda/ops/reduction.cuh"

namespace halftone::cuda {
namespace {

template <typename T>
struct SumOp {
  static constexpr bool kFloat = !std::is_integral_v<T>;
  using Narrow = std::conditional_t<kFloat, Compute<T>, uint64_t>;
  using Wide = std::conditional_t<kFloat, double, uint64_t>;
  // -0 adds nothing to any value, -0 included.
  static __device__ Narrow Start() { return kFloat ? static_cast<Narrow>(-0.0) : Narrow{0}; }
  static __device__ Wide Nothing() { return 0; }
  static __device__ Narrow Load(T x) {
    if constexpr (kFloat) {
      return Widen(x);
    } else {
      return static_cast<uint64_t>(static_cast<int64_t>(x));
    }
  }
  template <typename Acc>
  __device__ Acc operator()(Acc a, Acc b) const {
    return a + b;
  }
};

}  // namespace

cudaError_t LaunchSum(const Reduction& r, cudaStream_t stream) {
  return LaunchReductionOf<SumOp>(r, stream);
}

}  // namespace halftone::cuda
