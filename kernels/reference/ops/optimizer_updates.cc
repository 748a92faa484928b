// The update ops: the gradient is unscaled and clipped by two products in the type of the
// parameter (f32 for bf16), the rest is computed in f64 and rounded once; for bf16 to f32, which is
// then rounded as the node says.
#include <cmath>
#include <type_traits>

#include "halftone/core/philox.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/reference/support/reference_kernel.h"
#include "halftone/kernels/update_rounding.h"

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
using ops::UpdateRounding;

// The parameter and its states: how they are read and written. Output 0 is the parameter, the others
// are what comes from port `first_state` on.
class Stored {
 public:
  Stored(const RefNode& node, int first_state)
      : rounding_(ops::RoundingOf(node.attrs)),
        seed_(static_cast<uint64_t>(node.attrs.GetInt("seed"))),
        first_state_(first_state),
        outputs_(static_cast<int>(node.outputs.size())),
        size_(node.in(0).num_elements()) {}

  // What is not updated.
  void Copy(const RefCall& call) const {
    for (int o = 0; o < outputs_; ++o) {
      const int input = o == 0 ? +UpdatePort::kParam : first_state_ + o - 1;
      if (call.IsInPlace(input, o)) continue;
      for (int64_t i = 0; i < size_; ++i) call.Copy(input, i, o, i);
    }
  }
  int64_t size() const { return size_; }
  double Param(const RefCall& call, int64_t i) const {
    const double param = call.Load(UpdatePort::kParam, i);
    if (rounding_ != UpdateRounding::kKahan) return param;
    return Compensated(static_cast<float>(param),
                       static_cast<float>(call.Load(first_state_ + outputs_ - 2, i)));
  }
  // The state of output 1 + `number`.
  double State(const RefCall& call, int number, int64_t i) const {
    return call.Load(first_state_ + number, i);
  }
  void Store(const RefCall& call, int output, int64_t i, double x) const {
    if (rounding_ == UpdateRounding::kNearest) return call.Store(output, i, x);
    const float in_f32 = static_cast<float>(x);
    if (rounding_ == UpdateRounding::kKahan && output == 0) {
      const float kept = static_cast<float>(BF16(in_f32));
      call.Store(0, i, kept);
      return call.Store(outputs_ - 1, i, LostOf(in_f32, kept));
    }
    const auto step = static_cast<uint64_t>(call.LoadInt(UpdatePort::kStep, 0));
    const PhiloxCounter words = PhiloxBlock(seed_, step, RoundingGroup(output, i));
    call.Store(output, i,
               BF16BitsToF32(RoundStochastically(in_f32, RoundingBits(words[i % 4], output))));
  }

 private:
  UpdateRounding rounding_;
  uint64_t seed_;
  int first_state_, outputs_;
  int64_t size_;
};

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
  ElementUpdate(const RefCall& call, const Stored& stored, const Formula& formula, double gradient,
                int64_t i)
      : param(stored.Param(call, i)) {
    for (int state = 0, number = 0; state < ops::StatesOf<Update>::kCount; ++state) {
      if ((kSet >> state & 1) != 0) states[state] = stored.State(call, number++, i);
    }
    result = formula.template operator()<kSet>(param, gradient, states);
  }
  void Store(const RefCall& call, const Stored& stored, int64_t i) const {
    stored.Store(call, 0, i, result);
    for (int state = 0, output = 1; state < ops::StatesOf<Update>::kCount; ++state) {
      if ((kSet >> state & 1) != 0) stored.Store(call, output++, i, states[state]);
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
void RunUpdate(const RefCall& call, const Stored& stored, const Update& hyper) {
  const auto gradient = GradientOf<Gradient>(call, hyper.clip_value);
  const auto formula = FormulaOf(call, hyper);
  const auto element = [&](int64_t i) {
    return ElementUpdate<Update, kSet>(call, stored, formula, gradient(i), i);
  };
  [[maybe_unused]] double trust = 1;
  if constexpr (ops::kHasTrustRatio<Update>) {
    double param = 0, direction = 0;
    for (int64_t i = 0; i < stored.size(); ++i) {
      const auto e = element(i);
      param += e.param * e.param;
      direction += e.result * e.result;
    }
    trust = update_arithmetic::f64::TrustRatio(param, direction);
  }
  for (int64_t i = 0; i < stored.size(); ++i) {
    auto e = element(i);
    if constexpr (ops::kHasTrustRatio<Update>) e.result = formula.Step(e.param, e.result, trust);
    e.Store(call, stored, i);
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
  const Stored stored(node, UpdatePort::kFirstState);
  const bool f64 = node.inputs[UpdatePort::kParam].dtype == DType::kF64;
  const Update hyper = ops::WithAttributes(Update(), node.attrs);
  const unsigned set = ops::StateSet(hyper);
  return [=](const RefCall& call) {
    if (call.LoadInt(UpdatePort::kApply, 0) == 0) return stored.Copy(call);
    WithTypes<Update>(f64, set, [&]<typename Gradient>(auto states, std::type_identity<Gradient>) {
      RunUpdate<Update, decltype(states)::value, Gradient>(call, stored, hyper);
    });
  };
}

template <typename Update>
RefRun MakeRowUpdate(RefNode& node) {
  const Stored stored(node, RowUpdatePort::kFirstState);
  const int64_t rows = node.in(0)[0], width = node.in(0)[1];
  const int64_t count = node.in(RowUpdatePort::kIds).num_elements();
  const bool f64 = node.inputs[UpdatePort::kParam].dtype == DType::kF64;
  const Update hyper = ops::WithAttributes(Update(), node.attrs);
  const unsigned set = ops::StateSet(hyper);
  return [=](const RefCall& call) {
    stored.Copy(call);
    if (call.LoadInt(UpdatePort::kApply, 0) == 0) return;
    WithTypes<Update>(f64, set, [&]<typename Gradient>(auto states, std::type_identity<Gradient>) {
      const auto gradient = GradientOf<Gradient>(call, hyper.clip_value);
      const auto formula = FormulaOf(call, hyper);
      for (int64_t i = 0; i < count * width; ++i) {
        const int64_t id = call.LoadInt(RowUpdatePort::kIds, i / width);
        if (id < 0 || id >= rows) continue;
        const int64_t at = id * width + i % width;
        ElementUpdate<Update, decltype(states)::value>(call, stored, formula, gradient(i), at)
            .Store(call, stored, at);
      }
    });
  };
}

}  // namespace

void Register_reference_optimizer_updates(KernelRegistry& r) {
  const ir::DTypeSet stored{DType::kF64, DType::kF32, DType::kBF16};
  ops::ForEachUpdate([&]<typename Update>(const Update&) {
    AddReference(r, ops::kUpdateInfo<Update>.op, stored, MakeUpdate<Update>);
    if constexpr (ops::kIsRowWise<Update>) {
      AddReference(r, ops::RowUpdateOp<Update>(), stored, MakeRowUpdate<Update>);
    }
  });
}

}  // namespace halftone::kernels
