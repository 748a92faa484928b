// max over any axes and argmax over one. NaN wins.
#include <cmath>
#include <limits>

#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/cpu/ops/reduce_kernel.h"
#include "halftone/kernels/cpu/simd/reduce-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// NaN wins: it is larger than every x, and no x is larger than it.
struct MaxOp {
  using Acc = float;
  static constexpr Acc kInitial = -std::numeric_limits<float>::infinity();
  static HWY_INLINE F32Vec Start() { return hn::Set(F32Tag(), kInitial); }
  static HWY_INLINE F32Vec Step(F32Vec a, F32Vec x) {
    return hn::IfThenElse(hn::Or(hn::Gt(x, a), hn::IsNaN(x)), x, a);
  }
  static HWY_INLINE void Flush(F32Vec a, Acc* acc) {
    hn::StoreU(Step(hn::LoadU(F32Tag(), acc), a), F32Tag(), acc);
  }
  static HWY_INLINE void FlushLanes(F32Vec a, Acc* acc) {
    Acc lanes[kLanes];
    hn::StoreU(a, F32Tag(), lanes);
    for (size_t i = 0; i < kLanes; ++i) Scalar(lanes[i], acc);
  }
  static HWY_INLINE void Scalar(Acc x, Acc* acc) {
    if (x > *acc || std::isnan(x)) *acc = x;
  }
};

ReduceFns FindMax(DType dtype) { return FnsOf<MaxOp>(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindMax);

struct Largest {
  using Acc = float;
  static constexpr Acc kInitial = -std::numeric_limits<float>::infinity();
  static Acc Combine(Acc a, Acc b) { return b > a || std::isnan(b) ? b : a; }
};

class MaxKernel : public ReduceKernel<Largest> {
 public:
  explicit MaxKernel(const ir::Node& node)
      : ReduceKernel(node, HWY_DYNAMIC_DISPATCH(FindMax)(node.input_type(0).dtype)) {}
};

// x as [outer, classes, inner]. Inner 1: the maximum in SIMD, then the first place that has it.
class ArgmaxKernel : public Kernel {
 public:
  explicit ArgmaxKernel(const ir::Node& node) : dtype_(node.input_type(0).dtype) {
    const Shape& x = node.input_type(0).shape;
    const int axis = ops::CheckedAxis(node.attrs().GetInt("axis"), x.rank());
    for (int i = 0; i < axis; ++i) outer_ *= x[i];
    classes_ = x[axis];
    for (int i = axis + 1; i < x.rank(); ++i) inner_ *= x[i];
    fns_ = HWY_DYNAMIC_DISPATCH(FindMax)(dtype_);
  }

  void Run(const KernelArgs& args) override {
    if (outer_ * inner_ == 0) return;
    switch (dtype_) {
      case DType::kF16:
        return RunAs<F16>(args);
      case DType::kBF16:
        return RunAs<BF16>(args);
      default:
        return RunAs<float>(args);
    }
  }

 private:
  template <typename T>
  void RunAs(const KernelArgs& args) const {
    const T* x = static_cast<const T*>(args.inputs[0]);
    auto* y = static_cast<int64_t*>(args.outputs[0]);
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / classes_);
    ParallelFor(0, outer_ * inner_, grain, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        const T* start = x + o / inner_ * classes_ * inner_ + o % inner_;
        y[o] = inner_ == 1 ? InRun(start) : InColumn(start);
      }
    });
  }

  template <typename T>
  int64_t InRun(const T* x) const {
    float top = Largest::kInitial;
    fns_.run(x, classes_, &top);
    for (int64_t i = 0; i < classes_; ++i) {
      const float v = static_cast<float>(x[i]);
      if (v == top || std::isnan(v)) return i;
    }
    return 0;
  }

  template <typename T>
  int64_t InColumn(const T* x) const {
    int64_t best = 0;
    float top = static_cast<float>(x[0]);
    for (int64_t i = 1; i < classes_ && !std::isnan(top); ++i) {
      const float v = static_cast<float>(x[i * inner_]);
      if (v > top || std::isnan(v)) {
        best = i;
        top = v;
      }
    }
    return best;
  }

  DType dtype_;
  int64_t outer_ = 1, classes_ = 1, inner_ = 1;
  ReduceFns fns_;
};

}  // namespace

void Register_cpu_simd_max(KernelRegistry& r) {
  AddSimdCandidate<MaxKernel>(r, "max", ReducesInOrder);
  AddSimdCandidate<ArgmaxKernel>(r, "argmax", PlainInputs);
}

}  // namespace halftone::kernels
#endif
