// Unary elementwise ops and activation gradients: one pass over flat arrays, f32 arithmetic, one
// rounding.
#include <cstring>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/formula.h"
#include "halftone/kernels/functors-inl.h"

namespace halftone::kernels {
using UnaryFn = void (*)(const void* x, void* y, int64_t n, const FormulaNumbers& numbers);
using GradFn = void (*)(const void* at, const void* dy, void* dx, int64_t n,
                        const FormulaNumbers& numbers);
}  // namespace halftone::kernels

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename F>
F FormulaOfNumbers(const FormulaNumbers& numbers) {
  return With<F>(Splat(numbers[0]), Splat(numbers[1]));
}
template <typename F, typename T>
void Unary(const void* x, void* y, int64_t n, const FormulaNumbers& numbers) {
  MapVec(static_cast<const T*>(x), static_cast<T*>(y), n, FormulaOfNumbers<F>(numbers));
}
template <typename F, typename T>
void Grad(const void* at, const void* dy, void* dx, int64_t n, const FormulaNumbers& numbers) {
  MapVec2(static_cast<const T*>(at), static_cast<const T*>(dy), static_cast<T*>(dx), n,
          FormulaOfNumbers<F>(numbers));
}

template <typename F>
UnaryFn UnaryOf(DType dtype) {
  return dtype == DType::kF32   ? Unary<F, float>
         : dtype == DType::kF16 ? Unary<F, F16>
                                : Unary<F, BF16>;
}
template <typename F>
GradFn GradOf(DType dtype) {
  return dtype == DType::kF32   ? Grad<F, float>
         : dtype == DType::kF16 ? Grad<F, F16>
                                : Grad<F, BF16>;
}

// Null for a name that is not here.
UnaryFn FindUnary(const char* formula, DType dtype) {
  struct Row {
    const char* formula;
    UnaryFn (*of)(DType);
  };
  static constexpr Row kRows[] = {
#define HT_UNARY(op, Name, ...) {#op, UnaryOf<Name##F>},
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) \
  {#op ":none", UnaryOf<ByErf##F>}, {#op ":tanh", UnaryOf<ByTanh##F>},
#include "halftone/graph/ops/support/elementwise.def"
  };
  for (const Row& row : kRows) {
    if (std::strcmp(row.formula, formula) == 0) return row.of(dtype);
  }
  return nullptr;
}

GradFn FindUnaryGrad(const char* formula, DType dtype) {
  struct Row {
    const char* formula;
    GradFn (*of)(DType);
  };
  static constexpr Row kRows[] = {
#define HT_GRADIENT(op, Name, ...) {#op, GradOf<Name##F>},
#define HT_APPROXIMABLE_GRADIENT(op, ByErf, ByTanh, ...) \
  {#op ":none", GradOf<ByErf##F>}, {#op ":tanh", GradOf<ByTanh##F>},
#include "halftone/graph/ops/support/elementwise.def"
  };
  for (const Row& row : kRows) {
    if (std::strcmp(row.formula, formula) == 0) return row.of(dtype);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindUnary);
HWY_EXPORT(FindUnaryGrad);

class UnaryKernel : public Kernel {
 public:
  explicit UnaryKernel(const ir::Node& node)
      : n_(node.output_type().num_elements()),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        numbers_(NumbersOf(node.op(), node.attrs())) {
    fn_ = HWY_DYNAMIC_DISPATCH(FindUnary)(FormulaOf(node).c_str(), node.output_type().dtype);
    HT_CHECK(fn_ != nullptr, "no SIMD formula for the op");
  }
  void Run(const KernelArgs& args) override {
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      fn_(static_cast<const char*>(args.inputs[0]) + begin * size_,
          static_cast<char*>(args.outputs[0]) + begin * size_, end - begin, numbers_);
    });
  }

 private:
  int64_t n_, size_;
  FormulaNumbers numbers_;
  UnaryFn fn_;
};

class UnaryGradKernel : public Kernel {
 public:
  explicit UnaryGradKernel(const ir::Node& node)
      : n_(node.output_type().num_elements()),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        numbers_(NumbersOf(node.op(), node.attrs())) {
    fn_ = HWY_DYNAMIC_DISPATCH(FindUnaryGrad)(FormulaOf(node).c_str(), node.output_type().dtype);
    HT_CHECK(fn_ != nullptr, "no SIMD formula for the op");
  }
  void Run(const KernelArgs& args) override {
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      fn_(static_cast<const char*>(args.inputs[0]) + begin * size_,
          static_cast<const char*>(args.inputs[1]) + begin * size_,
          static_cast<char*>(args.outputs[0]) + begin * size_, end - begin, numbers_);
    });
  }

 private:
  int64_t n_, size_;
  FormulaNumbers numbers_;
  GradFn fn_;
};

}  // namespace

void Register_cpu_simd_unary(KernelRegistry& r) {
#define HT_UNARY(op, ...) AddSimdCandidate<UnaryKernel>(r, #op, SameLayouts);
#define HT_APPROXIMABLE HT_UNARY
#define HT_GRADIENT(op, ...) AddSimdCandidate<UnaryGradKernel>(r, #op, SameLayouts);
#define HT_APPROXIMABLE_GRADIENT HT_GRADIENT
#include "halftone/graph/ops/support/elementwise.def"
}

}  // namespace halftone::kernels
#endif
