// sum mean sum_to_shape conv2d_grad_bias conv3d_grad_bias: f32 lanes over short blocks, added in f64 in an order
// that the shape alone decides.
#include "halftone/kernels/cpu/ops/reduce_kernel.h"
#include "halftone/kernels/cpu/simd/reduce-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

struct SumOp {
  using Acc = double;
  static constexpr Acc kInitial = -0.0;  // adds nothing to any value, -0 included
  static HWY_INLINE F32Vec Start() { return hn::Set(F32Tag(), -0.0f); }
  static HWY_INLINE F32Vec Step(F32Vec a, F32Vec x) { return hn::Add(a, x); }
  static HWY_INLINE void Flush(F32Vec a, Acc* acc) { AddToDoubles(a, acc); }
  static HWY_INLINE void FlushLanes(F32Vec a, Acc* acc) {
    *acc += hn::GetLane(hn::SumOfLanes(F32Tag(), a));
  }
  static HWY_INLINE void Scalar(Acc x, Acc* acc) { *acc += x; }
};

ReduceFns FindSum(DType dtype) { return FnsOf<SumOp>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindSum);

struct Sum {
  using Acc = double;
  static constexpr Acc kInitial = -0.0;
  static Acc Combine(Acc a, Acc b) { return a + b; }
};

class SumKernel : public ReduceKernel<Sum> {
 public:
  explicit SumKernel(const ir::Node& node)
      : ReduceKernel(node, HWY_DYNAMIC_DISPATCH(FindSum)(node.input_type(0).dtype)) {}
};

}  // namespace

void Register_cpu_simd_sum(KernelRegistry& r) {
  for (const char* op : {"sum", "mean", "sum_to_shape", "conv2d_grad_bias", "conv3d_grad_bias"}) {
    AddSimdCandidate<SumKernel>(r, op, ReducesInOrder);
  }
}

}  // namespace halftone::kernels
#endif
