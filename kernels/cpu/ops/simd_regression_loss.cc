// mse_loss and l1_loss: one pass over both operands.
#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/regression_fns.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;

// Of a difference. 0 gives 0, so that the lanes behind a tail add nothing.
struct Square {
  HWY_INLINE V operator()(V d) const { return hn::Mul(d, d); }
};
struct Magnitude {
  HWY_INLINE V operator()(V d) const { return hn::Abs(d); }
};

template <typename F, typename T>
double LossSum(const void* a_data, const void* b_data, int64_t n) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  double total = 0;
  V sum = hn::Zero(F32Tag());
  ForBlocks(
      n, [&](auto load, size_t) { sum = hn::Add(sum, F()(hn::Sub(load(a), load(b)))); },
      [&] {
        total += SumOf(sum);
        sum = hn::Zero(F32Tag());
      });
  return total;
}

template <typename F, typename T>
void LossEach(const void* a, const void* b, float* y, int64_t n) {
  MapVec2(static_cast<const T*>(a), static_cast<const T*>(b), y, n,
          [](V x, V z) { return F()(hn::Sub(x, z)); });
}

template <typename F>
RegressionFns RegressionFnsOf(DType dtype) {
  return dtype == DType::kF32   ? RegressionFns{LossSum<F, float>, LossEach<F, float>}
         : dtype == DType::kF16 ? RegressionFns{LossSum<F, F16>, LossEach<F, F16>}
                                : RegressionFns{LossSum<F, BF16>, LossEach<F, BF16>};
}

RegressionFns FindRegression(bool square, DType dtype) {
  return square ? RegressionFnsOf<Square>(dtype) : RegressionFnsOf<Magnitude>(dtype);
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindRegression);

// Partial sums per fixed block, added in order: the loss does not depend on the threads.
class RegressionLossKernel : public Kernel {
 public:
  explicit RegressionLossKernel(const ir::Node& node)
      : n_(node.input_type(0).num_elements()),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        reduction_(node.attrs().GetString("reduction")),
        fns_(HWY_DYNAMIC_DISPATCH(FindRegression)(node.op().name == "mse_loss",
                                                  node.input_type(0).dtype)) {
    blocks_ = (n_ + kBlock - 1) / kBlock;
    if (reduction_ != "none") workspace_bytes_ = blocks_ * sizeof(double);
  }

  void Run(const KernelArgs& args) override {
    const char* a = static_cast<const char*>(args.inputs[0]);
    const char* b = static_cast<const char*>(args.inputs[1]);
    auto* y = static_cast<float*>(args.outputs[0]);
    if (reduction_ == "none") {
      ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        fns_.each(a + begin * size_, b + begin * size_, y + begin, end - begin);
      });
      return;
    }
    auto* partials = static_cast<double*>(args.workspace);
    ParallelFor(0, blocks_, 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * kBlock;
        partials[block] =
            fns_.sum(a + begin * size_, b + begin * size_, std::min(kBlock, n_ - begin));
      }
    });
    double sum = 0;
    for (int64_t block = 0; block < blocks_; ++block) sum += partials[block];
    // 0 / 0: the mean over nothing is NaN.
    if (reduction_ == "mean") sum /= static_cast<double>(n_);
    *y = static_cast<float>(sum);
  }

 private:
  static constexpr int64_t kBlock = 16384;
  int64_t n_, size_, blocks_;
  std::string reduction_;
  RegressionFns fns_;
};

absl::Status OneLayoutThroughout(const ir::Node& node) {
  const ir::Layout layout = node.input_type(0).layout;
  const bool each = node.output_type().shape == node.input_type(0).shape;
  if (node.input_type(1).layout != layout || (each && node.output_type().layout != layout)) {
    return Unimplemented("layouts differ");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_simd_regression_loss(KernelRegistry& r) {
  AddSimdCandidate<RegressionLossKernel>(r, "mse_loss", OneLayoutThroughout);
  AddSimdCandidate<RegressionLossKernel>(r, "l1_loss", OneLayoutThroughout);
}

}  // namespace halftone::kernels
#endif
