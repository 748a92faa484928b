// cross_entropy and its gradient: one pass per row for the maximum, one for the sum of
// exponentials; the per-row losses are added in f64 in row order, so a mean over many rows of
// 16-bit logits neither overflows nor depends on the threads. Rows are contiguous when the class
// axis is the last; otherwise elements of a row are `stride` apart and the scalar path runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halftone/kernels/cpu/hwy_cross_entropy.cc"
#include "halftone/kernels/cpu/simd_targets.h"
// Highway reads the macro that the line above defines.
#include <hwy/foreach_target.h>
// The rest is included once per target.
#include <cmath>
#include <limits>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/cross_entropy_rows.h"
#include "halftone/kernels/cpu/simd-inl.h"
#include "halftone/kernels/cpu/simd_kernel.h"
#include "halftone/kernels/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename T>
RowSums DenseRow(const void* row, int64_t classes) {
  const T* x = static_cast<const T*>(row);
  const float kLowest = -std::numeric_limits<float>::infinity();
  constexpr int64_t kStep = kLanes;
  const int64_t whole = classes / kStep * kStep;
  V max = Splat(kLowest);
  for (int64_t i = 0; i < whole; i += kStep) max = hn::Max(max, LoadVec(x + i));
  float top = hn::GetLane(hn::MaxOfLanes(F32Tag(), max));
  for (int64_t i = whole; i < classes; ++i) top = std::max(top, static_cast<float>(x[i]));
  RowSums sums;
  sums.max = top;
  // f32 over short blocks, f64 over all: a vocabulary has 10^5 classes.
  constexpr int64_t kBlock = 64 * kStep;
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    V sum_exp = Splat(0), sum = Splat(0);
    for (int64_t i = begin; i < std::min(begin + kBlock, whole); i += kStep) {
      const V v = LoadVec(x + i);
      sum_exp = hn::Add(sum_exp, ExpV(hn::Sub(v, Splat(top))));
      sum = hn::Add(sum, v);
    }
    sums.sum_exp += hn::GetLane(hn::SumOfLanes(F32Tag(), sum_exp));
    sums.sum += hn::GetLane(hn::SumOfLanes(F32Tag(), sum));
  }
  for (int64_t i = whole; i < classes; ++i) {
    const float v = static_cast<float>(x[i]);
    sums.sum_exp += std::exp(v - top);
    sums.sum += v;
  }
  return sums;
}

// dx = scale * (softmax(x) - smooth), without the target's own term.
template <typename T>
void DenseRowGrad(const void* row, void* grad, int64_t classes, float lse, float scale,
                  float smooth) {
  MapVec(static_cast<const T*>(row), static_cast<T*>(grad), classes, [&](V v) {
    return hn::Mul(Splat(scale), hn::Sub(ExpV(hn::Sub(v, Splat(lse))), Splat(smooth)));
  });
}

RowFns FindRowFns(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {DenseRow<F16>, DenseRowGrad<F16>};
    case DType::kBF16:
      return {DenseRow<BF16>, DenseRowGrad<BF16>};
    default:
      return {DenseRow<float>, DenseRowGrad<float>};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindRowFns);

// Everything a row loop needs to know, read from the node once.
struct Layout {
  explicit Layout(const ir::Node& node)
      : dtype(node.input_type(0).dtype), target_dtype(node.input_type(1).dtype) {
    const Shape& shape = node.input_type(0).shape;
    int64_t axis = node.attrs().GetInt("axis");
    if (axis < 0) axis += shape.rank();
    classes = shape[static_cast<int>(axis)];
    for (int i = static_cast<int>(axis) + 1; i < shape.rank(); ++i) stride *= shape[i];
    rows = classes == 0 ? 0 : shape.num_elements() / classes;
    size = static_cast<int64_t>(SizeOf(dtype));
    smoothing = node.attrs().GetFloat("label_smoothing");
    ignore_index = node.attrs().GetInt("ignore_index");
    reduction = node.attrs().GetString("reduction");
  }
  // Offset of element 0 of row `r` in the logits.
  int64_t Start(int64_t r) const { return r / stride * classes * stride + r % stride; }
  int64_t Target(const void* targets, int64_t r) const {
    return target_dtype == DType::kI64 ? static_cast<const int64_t*>(targets)[r]
                                       : static_cast<const int32_t*>(targets)[r];
  }
  float At(const void* data, int64_t i) const {
    switch (dtype) {
      case DType::kF16:
        return static_cast<float>(static_cast<const F16*>(data)[i]);
      case DType::kBF16:
        return static_cast<float>(static_cast<const BF16*>(data)[i]);
      default:
        return static_cast<const float*>(data)[i];
    }
  }
  void Put(void* data, int64_t i, float x) const {
    switch (dtype) {
      case DType::kF16:
        static_cast<F16*>(data)[i] = F16(x);
        break;
      case DType::kBF16:
        static_cast<BF16*>(data)[i] = BF16(x);
        break;
      default:
        static_cast<float*>(data)[i] = x;
    }
  }
  // The number of rows that count, or -1 after raising a fault.
  int64_t CheckTargets(const void* targets, Fault* fault) const {
    int64_t counted = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t t = Target(targets, r);
      if (t == ignore_index) continue;
      if (t < 0 || t >= classes) {
        if (!fault->raised) *fault = {true, t, classes};
        return -1;
      }
      ++counted;
    }
    return counted;
  }

  DType dtype, target_dtype;
  int64_t classes = 0, stride = 1, rows = 0, size = 0, ignore_index = 0;
  double smoothing = 0;
  std::string reduction;
};

constexpr int64_t kRowGrain = 64;

RowSums StridedRow(const Layout& l, const void* logits, int64_t start) {
  RowSums sums;
  sums.max = -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < l.classes; ++c)
    sums.max = std::max(sums.max, l.At(logits, start + c * l.stride));
  for (int64_t c = 0; c < l.classes; ++c) {
    const float v = l.At(logits, start + c * l.stride);
    sums.sum_exp += std::exp(v - sums.max);
    sums.sum += v;
  }
  return sums;
}

class CrossEntropyKernel : public Kernel {
 public:
  explicit CrossEntropyKernel(const ir::Node& node)
      : l_(node),
        fns_(HWY_DYNAMIC_DISPATCH(FindRowFns)(l_.dtype)),
        per_row_(l_.reduction == "none") {
    if (!per_row_) workspace_bytes_ = l_.rows * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    const int64_t counted = l_.CheckTargets(args.inputs[1], &args.state->fault);
    if (counted < 0) return;
    auto* losses = static_cast<float*>(per_row_ ? args.outputs[0] : args.workspace);
    auto* lse = static_cast<float*>(args.outputs[1]);
    ParallelFor(0, l_.rows, kRowGrain, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        losses[r] = static_cast<float>(Row(args, r, &lse[r]));
      }
    });
    if (per_row_) return;
    double sum = 0;
    for (int64_t r = 0; r < l_.rows; ++r) sum += losses[r];
    // 0 / 0 is NaN where no row counts, as in PyTorch.
    if (l_.reduction == "mean") sum /= static_cast<double>(counted);
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(sum);
  }

 private:
  // In f64 from the sums on: the loss of a confident row is a small difference.
  double Row(const KernelArgs& args, int64_t r, float* lse) const {
    const int64_t start = l_.Start(r);
    const RowSums sums =
        l_.stride == 1
            ? fns_.sums(static_cast<const char*>(args.inputs[0]) + start * l_.size, l_.classes)
            : StridedRow(l_, args.inputs[0], start);
    const double log_sum = sums.max + std::log(sums.sum_exp);
    *lse = static_cast<float>(log_sum);
    const int64_t target = l_.Target(args.inputs[1], r);
    if (target == l_.ignore_index) return 0;
    const double own = log_sum - l_.At(args.inputs[0], start + target * l_.stride);
    if (l_.smoothing == 0) return own;
    const double uniform = log_sum - sums.sum / static_cast<double>(l_.classes);
    return (1 - l_.smoothing) * own + l_.smoothing * uniform;
  }

  Layout l_;
  RowFns fns_;
  bool per_row_;
};

class CrossEntropyGradKernel : public Kernel {
 public:
  explicit CrossEntropyGradKernel(const ir::Node& node)
      : l_(node),
        fns_(HWY_DYNAMIC_DISPATCH(FindRowFns)(l_.dtype)),
        per_row_(l_.reduction == "none") {}

  void Run(const KernelArgs& args) override {
    const int64_t counted = l_.CheckTargets(args.inputs[1], &args.state->fault);
    if (counted < 0) return;
    const auto* dloss = static_cast<const float*>(args.inputs[3]);
    const double share = l_.reduction == "mean" ? 1.0 / static_cast<double>(counted) : 1.0;
    ParallelFor(0, l_.rows, kRowGrain, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        Row(args, r, static_cast<float>(dloss[per_row_ ? r : 0] * share));
      }
    });
  }

 private:
  void Row(const KernelArgs& args, int64_t r, float scale) const {
    const int64_t start = l_.Start(r);
    const int64_t target = l_.Target(args.inputs[1], r);
    const float lse = static_cast<const float*>(args.inputs[2])[r];
    const auto smooth = static_cast<float>(l_.smoothing / static_cast<double>(l_.classes));
    void* grad = args.outputs[0];
    if (target == l_.ignore_index) {
      for (int64_t c = 0; c < l_.classes; ++c) l_.Put(grad, start + c * l_.stride, 0);
      return;
    }
    // Read before the row is written: the gradient may lie over the logits.
    const int64_t own = start + target * l_.stride;
    const float p = std::exp(l_.At(args.inputs[0], own) - lse);
    if (l_.stride == 1) {
      fns_.grad(static_cast<const char*>(args.inputs[0]) + start * l_.size,
                static_cast<char*>(grad) + start * l_.size, l_.classes, lse, scale, smooth);
    } else {
      for (int64_t c = 0; c < l_.classes; ++c) {
        const int64_t i = start + c * l_.stride;
        l_.Put(grad, i, scale * (std::exp(l_.At(args.inputs[0], i) - lse) - smooth));
      }
    }
    // The target's element again, so that it too is rounded once.
    l_.Put(grad, own, scale * (p - smooth - static_cast<float>(1 - l_.smoothing)));
  }

  Layout l_;
  RowFns fns_;
  bool per_row_;
};

absl::Status PlainLogits(const ir::Node& node) {
  if (node.input_type(0).layout != ir::Layout::kPlain) return Unimplemented("needs plain layout");
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_hwy_cross_entropy(KernelRegistry& r) {
  AddSimdCandidate<CrossEntropyKernel>(r, "cross_entropy", PlainLogits);
  AddSimdCandidate<CrossEntropyGradKernel>(r, "cross_entropy_grad", PlainLogits);
}

}  // namespace halftone::kernels
#endif
