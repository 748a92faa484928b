// The elementwise ops in double, by the formulas that every device uses; whole numbers in 64 bits.
#include "halftone/kernels/double_functors-inl.h"
#include "halftone/kernels/formula.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

constexpr ir::DTypeSet kTruthValues{DType::kBool};

template <typename F>
double Of1(double x) {
  return F()(x);
}
template <typename F>
double Of2(double a, double b) {
  return F()(a, b);
}
template <typename F>
int64_t WholeOf1(int64_t x) {
  return F()(x);
}
template <typename F>
int64_t WholeOf2(int64_t a, int64_t b) {
  return F()(a, b);
}
template <typename F>
double SwappedOf2(double a, double b) {
  return F()(b, a);
}
template <typename F>
int64_t WholeSwappedOf2(int64_t a, int64_t b) {
  return F()(b, a);
}

// Formulas with numbers in them.
using Tuned1 = double (*)(double x, const FormulaNumbers& numbers);
using Tuned2 = double (*)(double a, double b, const FormulaNumbers& numbers);
template <typename F>
double TunedOf1(double x, const FormulaNumbers& numbers) {
  return in_double::With<F>(numbers[0], numbers[1])(x);
}
template <typename F>
double TunedOf2(double a, double b, const FormulaNumbers& numbers) {
  return in_double::With<F>(numbers[0], numbers[1])(a, b);
}
FormulaNumbers NumbersIn(const char* op, const RefNode& node) {
  return NumbersOf(*ir::OpRegistry::Global().Find(op), node.attrs);
}
void AddTuned1(KernelRegistry& r, const char* op, Tuned1 f) {
  AddReference(r, op, ir::kFloats, [=](RefNode& node) -> RefRun {
    return
        [size = node.out(0).num_elements(), numbers = NumbersIn(op, node), f](const RefCall& call) {
          for (int64_t i = 0; i < size; ++i) call.Store(0, i, f(call.Load(0, i), numbers));
        };
  });
}
void AddTuned2(KernelRegistry& r, const char* op, Tuned2 f) {
  AddReference(r, op, ir::kFloats, [=](RefNode& node) -> RefRun {
    return
        [size = node.out(0).num_elements(), numbers = NumbersIn(op, node), f](const RefCall& call) {
          for (int64_t i = 0; i < size; ++i) {
            call.Store(0, i, f(call.Load(0, i), call.Load(1, i), numbers));
          }
        };
  });
}

// The formula that the attribute `approximate` asks for.
void AddApproximable1(KernelRegistry& r, const char* op, Real1 by_erf, Real1 by_tanh) {
  AddReference(r, op, ir::kFloats, [=](RefNode& node) -> RefRun {
    const Real1 f = node.attrs.GetString("approximate") == "tanh" ? by_tanh : by_erf;
    return [size = node.out(0).num_elements(), f](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Store(0, i, f(call.Load(0, i)));
    };
  });
}
void AddApproximable2(KernelRegistry& r, const char* op, Real2 by_erf, Real2 by_tanh) {
  AddReference(r, op, ir::kFloats, [=](RefNode& node) -> RefRun {
    const Real2 f = node.attrs.GetString("approximate") == "tanh" ? by_tanh : by_erf;
    return [size = node.out(0).num_elements(), f](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Store(0, i, f(call.Load(0, i), call.Load(1, i)));
    };
  });
}

}  // namespace

void Register_reference_elementwise(KernelRegistry& r) {
  namespace real = in_double;
#define HT_UNARY(op, Name, ...) AddReference1(r, #op, ir::kFloats, Of1<real::Name##F>);
#define HT_WHOLE_UNARY(op, Name, ...) \
  AddReference1(r, #op, ir::kNumeric, Of1<real::Name##F>, WholeOf1<whole::Name##F>);
#define HT_TUNABLE(op, Name, ...) AddTuned1(r, #op, TunedOf1<real::Name##F>);
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) \
  AddApproximable1(r, #op, Of1<real::ByErf##F>, Of1<real::ByTanh##F>);
#define HT_GRADIENT(op, Name, ...) AddTuned2(r, #op, TunedOf2<real::Name##F>);
#define HT_APPROXIMABLE_GRADIENT(op, ByErf, ByTanh, ...) \
  AddApproximable2(r, #op, Of2<real::ByErf##F>, Of2<real::ByTanh##F>);
#define HT_BINARY(op, Name, ...) AddReference2(r, #op, ir::kFloats, Of2<real::Name##F>);
#define HT_WHOLE_BINARY(op, Name, ...) \
  AddReference2(r, #op, ir::kNumeric, Of2<real::Name##F>, WholeOf2<whole::Name##F>);
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE(op, Name, ...) \
  AddReference2(r, #op, ir::kAnyDType, Of2<real::Name##F>, WholeOf2<whole::Name##F>);
#define HT_COMPARE_SWAPPED(op, Name, ...) \
  AddReference2(r, #op, ir::kAnyDType, SwappedOf2<real::Name##F>, WholeSwappedOf2<whole::Name##F>);
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL(op, Name, ...) AddReference2(r, #op, kTruthValues, Of2<whole::Name##F>);
#define HT_LOGICAL_UNARY(op, Name, ...) AddReference1(r, #op, kTruthValues, Of1<whole::Name##F>);
#include "halftone/graph/ops/support/elementwise.def"
}

}  // namespace halftone::kernels
