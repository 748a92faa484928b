// The update ops: the gradient is unscaled and clipped by two products in the type of the
// parameter, the rest is computed in f64 and rounded once.
#include <bit>
#include <cmath>
#include <type_traits>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {

// The formulas, for float and double.
#define HT_FUNCTOR_INLINE inline
namespace update_arithmetic {

using std::isfinite;
#include "halftone/kernels/scalar_math.inc"

namespace f32 {
using V = float;
constexpr bool kF32 = true;
inline V Splat(double c) { return static_cast<V>(c); }
#include "halftone/kernels/optimizer_formulas.inc"
}  // namespace f32
namespace f64 {
using V = double;
constexpr bool kF32 = false;
inline V Splat(double c) { return c; }
#include "halftone/kernels/optimizer_formulas.inc"
}  // namespace f64
#undef HT_FUNCTOR_INLINE
}  // namespace update_arithmetic

namespace {

using ops::RowUpdatePort;
using ops::UpdatePort;

// What is not updated: output 0 is the parameter, the others the states.
void CopyUpdate(const RefCall& call, int64_t size, int states, int first_state) {
  for (int o = 0; o <= states; ++o) {
    const int input = o == 0 ? +UpdatePort::kParam : first_state + o - 1;
    if (call.IsInPlace(input, o)) continue;
    for (int64_t i = 0; i < size; ++i) call.Copy(input, i, o, i);
  }
}

// Gives the gradient of each element in f64.
template <typename Gradient>
auto GradientOf(const RefCall& call, double clip_value) {
  using T = decltype(Gradient::clip);
  const Gradient gradient{static_cast<T>(call.Load(UpdatePort::kInvScale, 0)),
                          static_cast<T>(call.Load(UpdatePort::kClip, 0)),
                          static_cast<T>(clip_value)};
  return [gradient, &call](int64_t i) -> double {
    return gradient(static_cast<T>(call.Load(UpdatePort::kGrad, i)));
  };
}

// What the formula makes of element i, with the states before and after it.
template <typename Update, unsigned kSet>
struct ElementUpdate {
  double param, result;
  double states[ops::StatesOf<Update>::kCount + 1] = {};

  template <typename Formula>
  ElementUpdate(const RefCall& call, const Formula& formula, double gradient, int64_t i,
                int first_state)
      : param(call.Load(UpdatePort::kParam, i)) {
    for (int state = 0, port = first_state; state < ops::StatesOf<Update>::kCount; ++state) {
      if ((kSet >> state & 1) != 0) states[state] = call.Load(port++, i);
    }
    result = formula.template operator()<kSet>(param, gradient, states);
  }
  void Store(const RefCall& call, int64_t i) const {
    call.Store(0, i, result);
    for (int state = 0, output = 1; state < ops::StatesOf<Update>::kCount; ++state) {
      if ((kSet >> state & 1) != 0) call.Store(output++, i, states[state]);
    }
  }
};

template <typename Update>
auto FormulaOf(const RefCall& call, const Update& hyper) {
  return update_arithmetic::f64::Formula<Update>::Of(
      hyper, call.Load(UpdatePort::kLr, 0),
      static_cast<double>(call.LoadInt(UpdatePort::kStep, 0)));
}

template <typename Update, unsigned kSet, typename Gradient>
void RunUpdate(const RefCall& call, int64_t size, const Update& hyper) {
  const auto gradient = GradientOf<Gradient>(call, hyper.clip_value);
  const auto formula = FormulaOf(call, hyper);
  const auto element = [&](int64_t i) {
    return ElementUpdate<Update, kSet>(call, formula, gradient(i), i, UpdatePort::kFirstState);
  };
  [[maybe_unused]] double trust = 1;
  if constexpr (ops::kHasTrustRatio<Update>) {
    double param = 0, direction = 0;
    for (int64_t i = 0; i < size; ++i) {
      const auto e = element(i);
      param += e.param * e.param;
      direction += e.result * e.result;
    }
    trust = update_arithmetic::f64::TrustRatio(param, direction);
  }
  for (int64_t i = 0; i < size; ++i) {
    auto e = element(i);
    if constexpr (ops::kHasTrustRatio<Update>) e.result = formula.Step(e.param, e.result, trust);
    e.Store(call, i);
  }
}

// Calls run(set, gradient) with the states that there are and the type of the gradient, both as
// types.
template <typename Update, typename Run>
void WithTypes(bool f64, unsigned set, const Run& run) {
  ops::WithStates<Update>(set, [&](auto constant) {
    if (f64) {
      run(constant, std::type_identity<update_arithmetic::f64::TrueGradient>());
    } else {
      run(constant, std::type_identity<update_arithmetic::f32::TrueGradient>());
    }
  });
}

template <typename Update>
RefRun MakeUpdate(RefNode& node) {
  const int64_t size = node.in(0).num_elements();
  const bool f64 = node.inputs[UpdatePort::kParam].dtype == DType::kF64;
  const Update hyper = ops::WithAttributes(Update(), node.attrs);
  const unsigned set = ops::StateSet(hyper);
  return [=](const RefCall& call) {
    if (call.LoadInt(UpdatePort::kApply, 0) == 0) {
      return CopyUpdate(call, size, std::popcount(set), UpdatePort::kFirstState);
    }
    WithTypes<Update>(f64, set, [&]<typename Gradient>(auto states, std::type_identity<Gradient>) {
      RunUpdate<Update, decltype(states)::value, Gradient>(call, size, hyper);
    });
  };
}

template <typename Update>
RefRun MakeRowUpdate(RefNode& node) {
  const int64_t rows = node.in(0)[0], width = node.in(0)[1];
  const int64_t count = node.in(RowUpdatePort::kIds).num_elements();
  const bool f64 = node.inputs[UpdatePort::kParam].dtype == DType::kF64;
  const Update hyper = ops::WithAttributes(Update(), node.attrs);
  const unsigned set = ops::StateSet(hyper);
  return [=](const RefCall& call) {
    CopyUpdate(call, rows * width, std::popcount(set), RowUpdatePort::kFirstState);
    if (call.LoadInt(UpdatePort::kApply, 0) == 0) return;
    WithTypes<Update>(f64, set, [&]<typename Gradient>(auto states, std::type_identity<Gradient>) {
      const auto gradient = GradientOf<Gradient>(call, hyper.clip_value);
      const auto formula = FormulaOf(call, hyper);
      for (int64_t i = 0; i < count * width; ++i) {
        const int64_t id = call.LoadInt(RowUpdatePort::kIds, i / width);
        if (id < 0 || id >= rows) continue;
        const int64_t at = id * width + i % width;
        ElementUpdate<Update, decltype(states)::value>(call, formula, gradient(i), at,
                                                       RowUpdatePort::kFirstState)
            .Store(call, at);
      }
    });
  };
}

}  // namespace

void Register_reference_optimizer_updates(KernelRegistry& r) {
  const ir::DTypeSet masters{DType::kF64, DType::kF32};
  ops::ForEachUpdate([&]<typename Update>(const Update&) {
    AddReference(r, ops::kUpdateInfo<Update>.op, masters, MakeUpdate<Update>);
    if constexpr (ops::kIsRowWise<Update>) {
      AddReference(r, ops::RowUpdateOp<Update>(), masters, MakeRowUpdate<Update>);
    }
  });
}

}  // namespace halftone::kernels
