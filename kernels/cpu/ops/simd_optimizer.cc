// Optimizer updates and gradient statistics: one pass over each tensor, f32 storage. A cleared
// `apply` flag copies every input to its output bit for bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halftone/kernels/cpu/ops/simd_optimizer.cc"
#include "halftone/kernels/cpu/simd/targets.h"
// Highway reads the macro that the line above defines.
#include <hwy/foreach_target.h>
// The rest is included once per target.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/cpu/ops/optimizer_operands.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

#define HT_FUNCTOR_INLINE HWY_INLINE
#include "halftone/kernels/optimizer_formulas.inc"
#undef HT_FUNCTOR_INLINE

// Sum of squares in f64.
#if HWY_TARGET == HWY_SCALAR
class SumOfSquares {
 public:
  HWY_INLINE void Add(V v) {
    const double x = hn::GetLane(v);
    sum_ += x * x;
  }
  double Total() const { return sum_; }

 private:
  double sum_ = 0;
};
#else
class SumOfSquares {
 public:
  // Not implicit: those are of no target.
  HWY_INLINE SumOfSquares() : low_(hn::Zero(Double())), high_(hn::Zero(Double())) {}
  HWY_INLINE void Add(V v) {
    const Double d;
    const Half half;
    const auto low = hn::PromoteTo(d, hn::LowerHalf(half, v));
    const auto high = hn::PromoteTo(d, hn::UpperHalf(half, v));
    low_ = hn::Add(low_, hn::Mul(low, low));
    high_ = hn::Add(high_, hn::Mul(high, high));
  }
  HWY_INLINE double Total() const {
    return hn::GetLane(hn::SumOfLanes(Double(), hn::Add(low_, high_)));
  }

 private:
  using Half = hn::Half<F32Tag>;
  using Double = hn::Rebind<double, Half>;
  hn::Vec<Double> low_, high_;
};
#endif

// The squares of parameter and direction, for the trust ratio. Lanes behind the tail add zeros.
template <unsigned kSet, typename Update, size_t... kState>
void SquaresRange(const Update& hyper, const UpdateOperands& o, int64_t n, double* squares,
                  std::index_sequence<kState...>) {
  const TrueGradient gradient{o.inv_scale, o.clip, static_cast<float>(hyper.clip_value)};
  const auto formula = Formula<Update>::Of(hyper, o.lr, o.step);
  SumOfSquares of_param, of_direction;
  ForRow(n, [&](auto load, auto) {
    const V zero = hn::Zero(F32Tag()), param = load(o.param);
    V states[] = {(ops::kHasState<kSet, kState> ? load(o.state[kState]) : zero)..., zero};
    of_param.Add(param);
    of_direction.Add(formula.template operator()<kSet>(param, gradient(load(o.grad)), states));
  });
  squares[0] = of_param.Total();
  squares[1] = of_direction.Total();
}

template <unsigned kSet, typename Update, size_t... kState>
void UpdateRange(const Update& hyper, const UpdateOperands& o, int64_t n,
                 std::index_sequence<kState...>) {
  const TrueGradient gradient{o.inv_scale, o.clip, static_cast<float>(hyper.clip_value)};
  const auto formula = Formula<Update>::Of(hyper, o.lr, o.step);
  ForRow(n, [&](auto load, auto store) {
    const V zero = hn::Zero(F32Tag());
    V states[] = {(ops::kHasState<kSet, kState> ? load(o.state[kState]) : zero)..., zero};
    const V param = load(o.param);
    V result = formula.template operator()<kSet>(param, gradient(load(o.grad)), states);
    if constexpr (ops::kHasTrustRatio<Update>) result = formula.Step(param, result, o.trust);
    store(result, o.new_param);
    ((ops::kHasState<kSet, kState> ? store(states[kState], o.new_state[kState]) : void()), ...);
  });
}

// `set`: the states that there are.
#define HT_TRUST_RATIO(Name)                                                                \
  void Name##Squares(const ops::Name##Update& hyper, unsigned set, const UpdateOperands& o, \
                     int64_t n, double* squares) {                                          \
    using Update = ops::Name##Update;                                                       \
    ops::WithStates<Update>(set, [&](auto constant) {                                       \
      SquaresRange<decltype(constant)::value>(                                              \
          hyper, o, n, squares, std::make_index_sequence<ops::StatesOf<Update>::kCount>()); \
    });                                                                                     \
  }                                                                                         \
  float Name##Trust(double param, double direction) { return TrustRatio(param, direction); }
#include "halftone/graph/ops/support/optimizers.def"
#define HT_UPDATE(Name, ...)                                                              \
  void Name##Range(const ops::Name##Update& hyper, unsigned set, const UpdateOperands& o, \
                   int64_t n) {                                                           \
    using Update = ops::Name##Update;                                                     \
    ops::WithStates<Update>(set, [&](auto constant) {                                     \
      UpdateRange<decltype(constant)::value>(                                             \
          hyper, o, n, std::make_index_sequence<ops::StatesOf<Update>::kCount>());        \
    });                                                                                   \
  }
#include "halftone/graph/ops/support/optimizers.def"

// Sum of squares of g * inv_scale in f64; clears *finite on inf or NaN.
double StatsRange(const float* g, float inv_scale, int64_t n, bool* finite) {
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

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(StatsRange);
#define HT_UPDATE(Name, ...) \
  HWY_EXPORT(Name##Range);   \
  auto RangeOf(const ops::Name##Update&) { return HWY_DYNAMIC_DISPATCH(Name##Range); }
#include "halftone/graph/ops/support/optimizers.def"

// The sums of squares of a piece, and the ratio of those of the whole tensor.
#define HT_TRUST_RATIO(Name)                                                               \
  HWY_EXPORT(Name##Squares);                                                               \
  HWY_EXPORT(Name##Trust);                                                                 \
  auto SquaresOf(const ops::Name##Update&) { return HWY_DYNAMIC_DISPATCH(Name##Squares); } \
  float TrustOf(const ops::Name##Update&, double param, double direction) {                \
    return HWY_DYNAMIC_DISPATCH(Name##Trust)(param, direction);                            \
  }
#include "halftone/graph/ops/support/optimizers.def"

using ops::UpdatePort;

// Pieces of a tensor whose sums are added in order: what comes out does not depend on the threads.
constexpr int64_t kSumBlock = 8192;

float ScalarF32(const KernelArgs& args, int port) {
  return *static_cast<const float*>(args.inputs[port]);
}

template <typename Update>
class UpdateKernel : public Kernel {
 public:
  explicit UpdateKernel(const ir::Node& node)
      : n_(node.output_type().num_elements()),
        hyper_(ops::WithAttributes(Update(), node.attrs())),
        set_(ops::StateSet(hyper_)) {
    if constexpr (ops::kHasTrustRatio<Update>) {
      workspace_bytes_ = static_cast<size_t>(SumBlocks()) * sizeof(Squares);
    }
  }

  void Run(const KernelArgs& args) override {
    if (!*static_cast<const bool*>(args.inputs[UpdatePort::kApply])) return CopyThrough(args);
    UpdateOperands operands;
    operands.lr = ScalarF32(args, UpdatePort::kLr);
    operands.inv_scale = ScalarF32(args, UpdatePort::kInvScale);
    operands.clip = ScalarF32(args, UpdatePort::kClip);
    operands.step =
        static_cast<double>(*static_cast<const int64_t*>(args.inputs[UpdatePort::kStep]));
    if constexpr (ops::kHasTrustRatio<Update>) operands.trust = Trust(args, operands);
    const auto fn = RangeOf(hyper_);
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      fn(hyper_, set_, At(args, operands, begin), end - begin);
    });
  }

 private:
  static_assert(ops::StatesOf<Update>::kCount <= UpdateOperands::kMostStates);
  using Squares = std::array<double, 2>;  // of parameter and direction

  int64_t SumBlocks() const { return (n_ + kSumBlock - 1) / kSumBlock; }

  // The operands of the piece that starts at `begin`.
  UpdateOperands At(const KernelArgs& args, UpdateOperands o, int64_t begin) const {
    o.param = static_cast<const float*>(args.inputs[UpdatePort::kParam]) + begin;
    o.grad = static_cast<const float*>(args.inputs[UpdatePort::kGrad]) + begin;
    o.new_param = static_cast<float*>(args.outputs[0]) + begin;
    for (int state = 0, there = 0; state < ops::StatesOf<Update>::kCount; ++state) {
      if ((set_ >> state & 1) == 0) continue;
      o.state[state] =
          static_cast<const float*>(args.inputs[UpdatePort::kFirstState + there]) + begin;
      o.new_state[state] = static_cast<float*>(args.outputs[1 + there]) + begin;
      ++there;
    }
    return o;
  }

  float Trust(const KernelArgs& args, const UpdateOperands& operands) const {
    auto* const blocks = static_cast<Squares*>(args.workspace);
    const auto squares = SquaresOf(hyper_);
    ParallelFor(0, SumBlocks(), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const int64_t begin = b * kSumBlock;
        squares(hyper_, set_, At(args, operands, begin), std::min(kSumBlock, n_ - begin),
                blocks[b].data());
      }
    });
    Squares sum = {0, 0};
    for (int64_t b = 0; b < SumBlocks(); ++b) {
      sum[0] += blocks[b][0];
      sum[1] += blocks[b][1];
    }
    return TrustOf(hyper_, sum[0], sum[1]);
  }

  void CopyThrough(const KernelArgs& args) const {
    const int outputs = 1 + std::popcount(set_);
    for (int i = 0; i < outputs; ++i) {
      const int input = i == 0 ? +UpdatePort::kParam : UpdatePort::kFirstState + i - 1;
      if (args.inputs[input] == args.outputs[i]) continue;
      std::memcpy(args.outputs[i], args.inputs[input], n_ * sizeof(float));
    }
  }

  int64_t n_;
  Update hyper_;
  unsigned set_;
};

// Ports: inv_scale, then the gradients.
class GradStatsKernel : public Kernel {
 public:
  explicit GradStatsKernel(const ir::Node& node) {
    for (int i = 1; i < node.num_inputs(); ++i) {
      const int64_t n = node.input_type(i).num_elements();
      for (int64_t begin = 0; begin < n; begin += kSumBlock) {
        blocks_.push_back({i, begin, std::min(kSumBlock, n - begin)});
      }
    }
    workspace_bytes_ = blocks_.size() * sizeof(Partial);
  }

  void Run(const KernelArgs& args) override {
    const float inv_scale = ScalarF32(args, 0);
    auto* partials = static_cast<Partial*>(args.workspace);
    const auto fn = HWY_DYNAMIC_DISPATCH(StatsRange);
    ParallelFor(0, static_cast<int64_t>(blocks_.size()), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const Block& block = blocks_[b];
        Partial partial{0, true};
        partial.sum = fn(static_cast<const float*>(args.inputs[block.port]) + block.begin,
                         inv_scale, block.count, &partial.finite);
        partials[b] = partial;
      }
    });
    double sum = 0;
    int32_t first_bad = -1;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      sum += partials[b].sum;
      if (!partials[b].finite && first_bad < 0) first_bad = blocks_[b].port - 1;
    }
    *static_cast<bool*>(args.outputs[0]) = first_bad < 0;
    *static_cast<float*>(args.outputs[1]) =
        first_bad < 0 ? static_cast<float>(std::sqrt(sum)) : HUGE_VALF;
    *static_cast<int32_t*>(args.outputs[2]) = first_bad;
  }

 private:
  struct Block {
    int port;
    int64_t begin, count;
  };
  struct Partial {
    double sum;
    bool finite;
  };
  std::vector<Block> blocks_;
};

absl::Status AllF32(const ir::Node& node) {
  for (const ir::Value& v : node.inputs()) {
    if (v.dtype() == DType::kF64 || IsLow(v.dtype())) return Unimplemented("only f32 state");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_simd_optimizer(KernelRegistry& r) {
  ops::ForEachUpdate([&r]<typename Update>(const Update&) {
    AddSimdCandidate<UpdateKernel<Update>>(r, ops::kUpdateInfo<Update>.op, AllF32);
  });
  AddSimdCandidate<GradStatsKernel>(r, "grad_stats", AllF32);
}

}  // namespace halftone::kernels
#endif
