// softmax, log_softmax and their gradients. Along contiguous classes lanes are classes; otherwise
// lanes are the positions beside each other.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halftone/kernels/cpu/hwy_softmax.cc"
#include "halftone/kernels/cpu/simd_targets.h"
// Highway reads the macro that the line above defines.
#include <hwy/foreach_target.h>
// The rest is included once per target.
#include <cmath>
#include <limits>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/infer_util.h"
#include "halftone/kernels/cpu/simd_kernel.h"
#include "halftone/kernels/cpu/simd_math-inl.h"
#include "halftone/kernels/cpu/softmax_fns.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Lanes from `count` on become `fill`.
HWY_INLINE V Filled(V v, size_t count, float fill) {
  return count == kLanes ? v : Select(hn::FirstN(F32Tag(), count), v, Splat(fill));
}

template <bool kLog, typename T>
void SoftmaxRow(const T* x, T* y, int64_t n) {
  V highest = Splat(kLowest);
  ForBlocks(
      n,
      [&](auto load, size_t count) { highest = hn::Max(highest, Filled(load(x), count, kLowest)); },
      [] {});
  const V max = Splat(hn::GetLane(hn::MaxOfLanes(F32Tag(), highest)));
  double total = 0;
  V sum = Splat(0);
  ForBlocks(
      n,
      [&](auto load, size_t count) {
        sum = hn::Add(sum, Filled(ExpV(hn::Sub(load(x), max)), count, 0));
      },
      [&] {
        total += SumOf(sum);
        sum = Splat(0);
      });
  const V scale = Splat(static_cast<float>(kLog ? std::log(total) : 1 / total));
  ForRow(n, [&](auto load, auto store) {
    const V shifted = hn::Sub(load(x), max);
    store(kLog ? hn::Sub(shifted, scale) : hn::Mul(ExpV(shifted), scale), y);
  });
}

// load(p) and store(v, p) for columns of x [classes, inner].
template <bool kLog, typename T, typename Load, typename Store>
HWY_INLINE void SoftmaxColumn(const T* x, T* y, int64_t classes, int64_t inner, const Load& load,
                              const Store& store) {
  V max = Splat(kLowest);
  for (int64_t k = 0; k < classes; ++k) max = hn::Max(max, load(x + k * inner));
  V sum = Splat(0);
  for (int64_t k = 0; k < classes; ++k) {
    sum = hn::Add(sum, ExpV(hn::Sub(load(x + k * inner), max)));
  }
  const V scale = kLog ? LogV(sum) : hn::Div(Splat(1), sum);
  for (int64_t k = 0; k < classes; ++k) {
    const V shifted = hn::Sub(load(x + k * inner), max);
    store(kLog ? hn::Sub(shifted, scale) : hn::Mul(ExpV(shifted), scale), y + k * inner);
  }
}

template <bool kLog, typename T>
void Softmax(const void* x_data, void* y_data, int64_t classes, int64_t inner, int64_t begin,
             int64_t end) {
  const T* x = static_cast<const T*>(x_data) + begin;
  T* y = static_cast<T*>(y_data) + begin;
  if (inner == 1) return SoftmaxRow<kLog>(x, y, classes);
  constexpr int64_t kStep = kLanes;
  int64_t left = end - begin;
  for (; left >= kStep; left -= kStep, x += kStep, y += kStep) {
    SoftmaxColumn<kLog>(
        x, y, classes, inner, [](const T* p) { return LoadVec(p); },
        [](V v, T* p) { StoreVec(v, p); });
  }
  if (left <= 0) return;
  const size_t rest = left;
  SoftmaxColumn<kLog>(
      x, y, classes, inner, [rest](const T* p) { return LoadPart(p, rest); },
      [rest](V v, T* p) { StorePart(v, p, rest); });
}

// softmax: dx = y (dy - sum of y dy). log_softmax: dx = dy - e^y sum of dy.
template <bool kLog>
HWY_INLINE V SumTerm(V y, V dy) {
  return kLog ? dy : hn::Mul(y, dy);
}
template <bool kLog>
HWY_INLINE V GradOf(V y, V dy, V sum) {
  return kLog ? hn::Sub(dy, hn::Mul(ExpV(y), sum)) : hn::Mul(y, hn::Sub(dy, sum));
}

template <bool kLog, typename T>
void SoftmaxGradRow(const T* y, const T* dy, T* dx, int64_t n) {
  double total = 0;
  V sum = Splat(0);
  ForBlocks(
      n, [&](auto load, size_t) { sum = hn::Add(sum, SumTerm<kLog>(load(y), load(dy))); },
      [&] {
        total += SumOf(sum);
        sum = Splat(0);
      });
  const V all = Splat(static_cast<float>(total));
  ForRow(n, [&](auto load, auto store) { store(GradOf<kLog>(load(y), load(dy), all), dx); });
}

template <bool kLog, typename T, typename Load, typename Store>
HWY_INLINE void SoftmaxGradColumn(const T* y, const T* dy, T* dx, int64_t classes, int64_t inner,
                                  const Load& load, const Store& store) {
  V sum = Splat(0);
  for (int64_t k = 0; k < classes; ++k) {
    sum = hn::Add(sum, SumTerm<kLog>(load(y + k * inner), load(dy + k * inner)));
  }
  for (int64_t k = 0; k < classes; ++k) {
    store(GradOf<kLog>(load(y + k * inner), load(dy + k * inner), sum), dx + k * inner);
  }
}

template <bool kLog, typename T>
void SoftmaxGrad(const void* y_data, const void* dy_data, void* dx_data, int64_t classes,
                 int64_t inner, int64_t begin, int64_t end) {
  const T* y = static_cast<const T*>(y_data) + begin;
  const T* dy = static_cast<const T*>(dy_data) + begin;
  T* dx = static_cast<T*>(dx_data) + begin;
  if (inner == 1) return SoftmaxGradRow<kLog>(y, dy, dx, classes);
  constexpr int64_t kStep = kLanes;
  int64_t left = end - begin;
  for (; left >= kStep; left -= kStep, y += kStep, dy += kStep, dx += kStep) {
    SoftmaxGradColumn<kLog>(
        y, dy, dx, classes, inner, [](const T* p) { return LoadVec(p); },
        [](V v, T* p) { StoreVec(v, p); });
  }
  if (left <= 0) return;
  const size_t rest = left;
  SoftmaxGradColumn<kLog>(
      y, dy, dx, classes, inner, [rest](const T* p) { return LoadPart(p, rest); },
      [rest](V v, T* p) { StorePart(v, p, rest); });
}

template <bool kLog>
SoftmaxFn SoftmaxOf(DType dtype) {
  return dtype == DType::kF32   ? Softmax<kLog, float>
         : dtype == DType::kF16 ? Softmax<kLog, F16>
                                : Softmax<kLog, BF16>;
}
template <bool kLog>
SoftmaxGradFn SoftmaxGradOf(DType dtype) {
  return dtype == DType::kF32   ? SoftmaxGrad<kLog, float>
         : dtype == DType::kF16 ? SoftmaxGrad<kLog, F16>
                                : SoftmaxGrad<kLog, BF16>;
}
SoftmaxFn FindSoftmax(bool log, DType dtype) {
  return log ? SoftmaxOf<true>(dtype) : SoftmaxOf<false>(dtype);
}
SoftmaxGradFn FindSoftmaxGrad(bool log, DType dtype) {
  return log ? SoftmaxGradOf<true>(dtype) : SoftmaxGradOf<false>(dtype);
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindSoftmax);
HWY_EXPORT(FindSoftmaxGrad);

bool IsLog(const ir::Node& node) { return node.op().name.rfind("log_", 0) == 0; }

// x as `outer` matrices [classes, inner], done in pieces of columns.
class SoftmaxLoop {
 public:
  explicit SoftmaxLoop(const ir::Node& node)
      : size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))) {
    const Shape& x = node.output_type().shape;
    const int axis = ops::CheckedAxis(node.attrs().GetInt("axis"), x.rank());
    for (int i = 0; i < axis; ++i) outer_ *= x[i];
    classes_ = x[axis];
    for (int i = axis + 1; i < x.rank(); ++i) inner_ *= x[i];
  }

  // call(byte_offset, classes, inner, begin, end)
  template <typename Call>
  void Run(const Call& call) const {
    if (outer_ * classes_ * inner_ == 0) return;
    constexpr int64_t kColumns = 64;
    const int64_t pieces = (inner_ + kColumns - 1) / kColumns;
    const int64_t work = classes_ * std::min(inner_, kColumns);
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / 8 / work);
    ParallelFor(0, outer_ * pieces, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t begin = i % pieces * kColumns;
        call(i / pieces * classes_ * inner_ * size_, classes_, inner_, begin,
             std::min(inner_, begin + kColumns));
      }
    });
  }

 private:
  int64_t size_, outer_ = 1, classes_ = 1, inner_ = 1;
};

// y may be x in place: a piece is read before it is written.
class SoftmaxKernel : public Kernel {
 public:
  explicit SoftmaxKernel(const ir::Node& node)
      : loop_(node),
        fn_(HWY_DYNAMIC_DISPATCH(FindSoftmax)(IsLog(node), node.output_type().dtype)) {}
  void Run(const KernelArgs& args) override {
    loop_.Run([&](int64_t at, int64_t classes, int64_t inner, int64_t begin, int64_t end) {
      fn_(static_cast<const char*>(args.inputs[0]) + at, static_cast<char*>(args.outputs[0]) + at,
          classes, inner, begin, end);
    });
  }

 private:
  SoftmaxLoop loop_;
  SoftmaxFn fn_;
};

class SoftmaxGradKernel : public Kernel {
 public:
  explicit SoftmaxGradKernel(const ir::Node& node)
      : loop_(node),
        fn_(HWY_DYNAMIC_DISPATCH(FindSoftmaxGrad)(IsLog(node), node.output_type().dtype)) {}
  void Run(const KernelArgs& args) override {
    loop_.Run([&](int64_t at, int64_t classes, int64_t inner, int64_t begin, int64_t end) {
      fn_(static_cast<const char*>(args.inputs[0]) + at,
          static_cast<const char*>(args.inputs[1]) + at, static_cast<char*>(args.outputs[0]) + at,
          classes, inner, begin, end);
    });
  }

 private:
  SoftmaxLoop loop_;
  SoftmaxGradFn fn_;
};

absl::Status PlainOperands(const ir::Node& node) {
  if (node.output_type().shape.rank() == 0) return Unimplemented("rank 0");
  for (const ir::Value& v : node.inputs()) {
    if (v.type().layout != ir::Layout::kPlain) return Unimplemented("needs plain layout");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_hwy_softmax(KernelRegistry& r) {
  AddSimdCandidate<SoftmaxKernel>(r, "softmax", PlainOperands);
  AddSimdCandidate<SoftmaxKernel>(r, "log_softmax", PlainOperands);
  AddSimdCandidate<SoftmaxGradKernel>(r, "softmax_grad", PlainOperands);
  AddSimdCandidate<SoftmaxGradKernel>(r, "log_softmax_grad", PlainOperands);
}

}  // namespace halftone::kernels
#endif
