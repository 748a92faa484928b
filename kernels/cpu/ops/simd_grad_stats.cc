// grad_stats grad_squares: whether gradients are finite, and their norm.
#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/optimizer_operands.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/squares-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Sum of squares of g * inv_scale in f64; clears *finite on inf or NaN.
template <typename T>
double StatsRange(const void* gradient, float inv_scale, int64_t n, bool* finite) {
  const T* g = static_cast<const T*>(gradient);
  SumOfSquares sum;
  bool all_finite = true;
  ForRow(n, [&](auto load, auto) {
    const V v = hn::Mul(load(g), Splat(inv_scale));
    all_finite = all_finite && hn::AllTrue(F32Tag(), hn::IsFinite(v));
    sum.Add(v);
  });
  if (!all_finite) *finite = false;
  return sum.Total();
}

using StatsFn = double (*)(const void* gradient, float inv_scale, int64_t n, bool* finite);

StatsFn FindStats(DType dtype) {
  return dtype == DType::kF32   ? StatsRange<float>
         : dtype == DType::kF16 ? StatsRange<F16>
                                : StatsRange<BF16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindStats);

// Sums of squares of the gradients behind the first port, each in f64 in the order of its blocks, however many
// threads there are.
class GradientSquares {
 public:
  explicit GradientSquares(const ir::Node& node) : ports_(node.num_inputs() - 1) {
    for (int i = 1; i < node.num_inputs(); ++i) {
      const ir::ValueType& type = node.input_type(i);
      const auto element = static_cast<int64_t>(SizeOf(type.dtype));
      const auto stats = HWY_DYNAMIC_DISPATCH(FindStats)(type.dtype);
      const int64_t n = type.num_elements();
      for (int64_t begin = 0; begin < n; begin += kSumBlock) {
        blocks_.push_back({i, begin * element, std::min(kSumBlock, n - begin), stats});
      }
    }
  }

  size_t workspace_bytes() const { return blocks_.size() * sizeof(Partial); }

  // Calls done(gradient, sum, finite) for each, in order.
  template <typename Done>
  void Run(const KernelArgs& args, const Done& done) const {
    const float inv_scale = ScalarF32(args, 0);
    auto* partials = static_cast<Partial*>(args.workspace);
    ParallelFor(0, static_cast<int64_t>(blocks_.size()), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const Block& block = blocks_[b];
        Partial partial{0, true};
        partial.sum = block.stats(static_cast<const char*>(args.inputs[block.port]) + block.begin,
                                  inv_scale, block.count, &partial.finite);
        partials[b] = partial;
      }
    });
    size_t b = 0;
    for (int port = 1; port <= ports_; ++port) {
      Partial whole{0, true};
      for (; b < blocks_.size() && blocks_[b].port == port; ++b) {
        whole.sum += partials[b].sum;
        whole.finite = whole.finite && partials[b].finite;
      }
      done(port - 1, whole.sum, whole.finite);
    }
  }

 private:
  struct Block {
    int port;
    int64_t begin, count;  // in bytes, in elements
    double (*stats)(const void* gradient, float inv_scale, int64_t n, bool* finite);
  };
  struct Partial {
    double sum;
    bool finite;
  };
  const int ports_;
  std::vector<Block> blocks_;
};

class GradStatsKernel : public Kernel {
 public:
  explicit GradStatsKernel(const ir::Node& node) : squares_(node) {
    workspace_bytes_ = squares_.workspace_bytes();
  }

  void Run(const KernelArgs& args) override {
    double sum = 0;
    int32_t first_bad = -1;
    squares_.Run(args, [&](int gradient, double square, bool finite) {
      sum += square;
      if (!finite && first_bad < 0) first_bad = gradient;
    });
    *static_cast<bool*>(args.outputs[0]) = first_bad < 0;
    *static_cast<float*>(args.outputs[1]) =
        first_bad < 0 ? static_cast<float>(std::sqrt(sum)) : HUGE_VALF;
    *static_cast<int32_t*>(args.outputs[2]) = first_bad;
  }

 private:
  const GradientSquares squares_;
};

class GradSquaresKernel : public Kernel {
 public:
  explicit GradSquaresKernel(const ir::Node& node)
      : squares_(node), gradients_(node.num_inputs() - 1) {
    workspace_bytes_ = squares_.workspace_bytes();
  }

  void Run(const KernelArgs& args) override {
    auto* const sums = static_cast<double*>(args.outputs[0]);
    squares_.Run(args, [&](int gradient, double square, bool finite) {
      sums[gradient] = square;
      sums[gradients_ + gradient] = finite ? 0 : 1;
    });
  }

 private:
  const GradientSquares squares_;
  const int gradients_;
};

}  // namespace

void Register_cpu_simd_grad_stats(KernelRegistry& r) {
  AddSimdCandidate<GradStatsKernel>(r, "grad_stats", HasNoF64);
  AddSimdCandidate<GradSquaresKernel>(r, "grad_squares", HasNoF64);
}

}  // namespace halftone::kernels
#endif
