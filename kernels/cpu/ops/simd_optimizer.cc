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
HWY_INLINE void UpdatePiece(const Formula<Update>& formula, const TrueGradient& gradient,
                            const UpdateOperands& o, int64_t n, std::index_sequence<kState...>) {
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

template <unsigned kSet, typename Update>
void UpdateRange(const Update& hyper, const UpdateOperands& o, int64_t n) {
  const TrueGradient gradient{o.inv_scale, o.clip, static_cast<float>(hyper.clip_value)};
  UpdatePiece<kSet>(Formula<Update>::Of(hyper, o.lr, o.step), gradient, o, n,
                    std::make_index_sequence<ops::StatesOf<Update>::kCount>());
}

// Gradient i belongs to row ids[i] of a table.
template <unsigned kSet, typename Update>
void UpdateRows(const Update& hyper, const UpdateOperands& table, const UpdatedRows& rows) {
  const TrueGradient gradient{table.inv_scale, table.clip, static_cast<float>(hyper.clip_value)};
  const auto formula = Formula<Update>::Of(hyper, table.lr, table.step);
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t id = rows.ids[i];
    if (id < 0 || id >= rows.in_table) continue;
    UpdateOperands row = table.At(id * rows.width);
    row.grad = table.grad + i * rows.width;
    UpdatePiece<kSet>(formula, gradient, row, rows.width,
                      std::make_index_sequence<ops::StatesOf<Update>::kCount>());
  }
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
#define HT_UPDATE(Name, ...)                                                               \
  void Name##Range(const ops::Name##Update& hyper, unsigned set, const UpdateOperands& o,  \
                   int64_t n) {                                                            \
    using Update = ops::Name##Update;                                                      \
    ops::WithStates<Update>(                                                               \
        set, [&](auto constant) { UpdateRange<decltype(constant)::value>(hyper, o, n); }); \
  }
#include "halftone/graph/ops/support/optimizers.def"
#define HT_ROW_WISE(Name, ...)                                                               \
  void Name##Rows(const ops::Name##Update& hyper, unsigned set, const UpdateOperands& o,     \
                  const UpdatedRows& rows) {                                                 \
    ops::WithStates<ops::Name##Update>(                                                      \
        set, [&](auto constant) { UpdateRows<decltype(constant)::value>(hyper, o, rows); }); \
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

#define HT_ROW_WISE(Name, ...) \
  HWY_EXPORT(Name##Rows);      \
  auto RowsOf(const ops::Name##Update&) { return HWY_DYNAMIC_DISPATCH(Name##Rows); }
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

using ops::RowUpdatePort;
using ops::UpdatePort;

// Pieces of a tensor whose sums are added in order: what comes out does not depend on the threads.
constexpr int64_t kSumBlock = 8192;

float ScalarF32(const KernelArgs& args, int port) {
  return *static_cast<const float*>(args.inputs[port]);
}

// The operands of an update whose states start at port `first_state`.
template <typename Update>
class UpdateOf : public Kernel {
 protected:
  static_assert(ops::StatesOf<Update>::kCount <= UpdateOperands::kMostStates);

  UpdateOf(const ir::Node& node, int first_state)
      : n_(node.output_type().num_elements()),
        hyper_(ops::WithAttributes(Update(), node.attrs())),
        set_(ops::StateSet(hyper_)),
        first_state_(first_state) {}

  static bool Applies(const KernelArgs& args) {
    return *static_cast<const bool*>(args.inputs[UpdatePort::kApply]);
  }

  UpdateOperands Operands(const KernelArgs& args) const {
    UpdateOperands o;
    o.lr = ScalarF32(args, UpdatePort::kLr);
    o.inv_scale = ScalarF32(args, UpdatePort::kInvScale);
    o.clip = ScalarF32(args, UpdatePort::kClip);
    o.step = static_cast<double>(*static_cast<const int64_t*>(args.inputs[UpdatePort::kStep]));
    o.param = static_cast<const float*>(args.inputs[UpdatePort::kParam]);
    o.grad = static_cast<const float*>(args.inputs[UpdatePort::kGrad]);
    o.new_param = static_cast<float*>(args.outputs[0]);
    for (int state = 0, there = 0; state < ops::StatesOf<Update>::kCount; ++state) {
      if ((set_ >> state & 1) == 0) continue;
      o.state[state] = static_cast<const float*>(args.inputs[first_state_ + there]);
      o.new_state[state] = static_cast<float*>(args.outputs[1 + there]);
      ++there;
    }
    return o;
  }

  // Makes every output its input.
  void CopyThrough(const KernelArgs& args) const {
    const int outputs = 1 + std::popcount(set_);
    for (int i = 0; i < outputs; ++i) {
      const int input = i == 0 ? +UpdatePort::kParam : first_state_ + i - 1;
      if (args.inputs[input] == args.outputs[i]) continue;
      std::memcpy(args.outputs[i], args.inputs[input], n_ * sizeof(float));
    }
  }

  int64_t n_;
  Update hyper_;
  unsigned set_;

 private:
  int first_state_;
};

template <typename Update>
class UpdateKernel : public UpdateOf<Update> {
  using Base = UpdateOf<Update>;
  using Base::hyper_, Base::n_, Base::set_;

 public:
  explicit UpdateKernel(const ir::Node& node) : Base(node, UpdatePort::kFirstState) {
    if constexpr (ops::kHasTrustRatio<Update>) {
      this->workspace_bytes_ = static_cast<size_t>(SumBlocks()) * sizeof(Squares);
    }
  }

  void Run(const KernelArgs& args) override {
    if (!Base::Applies(args)) return Base::CopyThrough(args);
    UpdateOperands operands = Base::Operands(args);
    if constexpr (ops::kHasTrustRatio<Update>) operands.trust = Trust(args, operands);
    const auto fn = RangeOf(hyper_);
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      fn(hyper_, set_, operands.At(begin), end - begin);
    });
  }

 private:
  using Squares = std::array<double, 2>;  // of parameter and direction

  int64_t SumBlocks() const { return (n_ + kSumBlock - 1) / kSumBlock; }

  float Trust(const KernelArgs& args, const UpdateOperands& operands) const {
    auto* const blocks = static_cast<Squares*>(args.workspace);
    const auto squares = SquaresOf(hyper_);
    ParallelFor(0, SumBlocks(), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const int64_t begin = b * kSumBlock;
        squares(hyper_, set_, operands.At(begin), std::min(kSumBlock, n_ - begin),
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
};

template <typename Update>
class RowUpdateKernel : public UpdateOf<Update> {
  using Base = UpdateOf<Update>;
  using Base::hyper_, Base::set_;

 public:
  explicit RowUpdateKernel(const ir::Node& node)
      : Base(node, RowUpdatePort::kFirstState),
        in_table_(node.output_type().shape[0]),
        width_(node.output_type().shape[1]),
        count_(node.input_type(RowUpdatePort::kIds).num_elements()) {}

  void Run(const KernelArgs& args) override {
    Base::CopyThrough(args);
    if (!Base::Applies(args) || width_ == 0) return;
    const UpdateOperands operands = Base::Operands(args);
    const auto* ids = static_cast<const int64_t*>(args.inputs[RowUpdatePort::kIds]);
    const auto fn = RowsOf(hyper_);
    ParallelFor(0, count_, std::max<int64_t>(1, kElementwiseGrain / width_),
                [&](int64_t begin, int64_t end) {
                  UpdateOperands piece = operands;
                  piece.grad += begin * width_;
                  fn(hyper_, set_, piece, {ids + begin, end - begin, in_table_, width_});
                });
  }

 private:
  int64_t in_table_, width_, count_;
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
    if constexpr (ops::kIsRowWise<Update>) {
      AddSimdCandidate<RowUpdateKernel<Update>>(r, ops::RowUpdateOp<Update>(), AllF32);
    }
  });
  AddSimdCandidate<GradStatsKernel>(r, "grad_stats", AllF32);
}

}  // namespace halftone::kernels
#endif
