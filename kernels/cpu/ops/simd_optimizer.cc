// Optimizer updates: one pass over each tensor, of f32, or of bf16 in blocks (low_update.h). A cleared
// `apply` flag copies every input to its output bit for bit. A 16-bit copy of the parameter is made
// piece by piece, from what the cache still has.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/cpu/ops/low_update.h"
#include "halftone/kernels/cpu/ops/optimizer_operands.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/squares-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

#define HT_FUNCTOR_INLINE HWY_INLINE
#include "halftone/kernels/optimizer_formulas.inc"
#undef HT_FUNCTOR_INLINE

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

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

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

// Elements that are updated and then rounded to 16 bit: three or four arrays of so many floats stay
// in the first cache.
constexpr int64_t kRoundedPiece = 2048;

// The 16-bit copy of a parameter that its update writes as well.
class LowCopy {
 public:
  explicit LowCopy(const ir::Node& update) {
    const std::optional<DType> low = ops::LowCopyOf(update);
    if (!low.has_value()) return;
    const DType param = update.output_type().dtype;
    param_size_ = static_cast<int64_t>(SizeOf(param));
    size_ = static_cast<int64_t>(SizeOf(*low));
    convert_ = ConvertLoop(param, *low);
  }

  // Where it is to be written in this run; null: nowhere.
  char* Of(const KernelArgs& args) const {
    return convert_ == nullptr || args.copies == nullptr ? nullptr
                                                         : static_cast<char*>(args.copies[0]);
  }
  // Rounds elements [begin, end) of `param` into `copy`.
  void Write(const void* param, char* copy, int64_t begin, int64_t end) const {
    convert_(static_cast<const char*>(param) + begin * param_size_, copy + begin * size_,
             end - begin);
  }

 private:
  int64_t param_size_ = 0, size_ = 0;
  ConvertFn convert_ = nullptr;
};

// The operands of an update whose states start at port `first_state`.
template <typename Update>
class UpdateOf : public Kernel {
 protected:
  static_assert(ops::StatesOf<Update>::kCount <= UpdateOperands::kMostStates);

  UpdateOf(const ir::Node& node, int first_state)
      : n_(node.output_type().num_elements()),
        hyper_(ops::WithAttributes(Update(), node.attrs())),
        set_(ops::StateSet(hyper_)),
        first_state_(first_state),
        outputs_(node.num_outputs()),
        bytes_(static_cast<size_t>(node.output_type().num_bytes())) {
    if (node.output_type().dtype == DType::kBF16) in_bf16_.emplace(node, set_, first_state);
  }

  static bool Applies(const KernelArgs& args) {
    return *static_cast<const bool*>(args.inputs[UpdatePort::kApply]);
  }

  // Without the arrays.
  static UpdateOperands Scalars(const KernelArgs& args) {
    UpdateOperands o;
    o.lr = ScalarF32(args, UpdatePort::kLr);
    o.inv_scale = ScalarF32(args, UpdatePort::kInvScale);
    o.clip = ScalarF32(args, UpdatePort::kClip);
    o.step = static_cast<double>(*static_cast<const int64_t*>(args.inputs[UpdatePort::kStep]));
    return o;
  }

  // With the arrays of an f32 update.
  UpdateOperands Operands(const KernelArgs& args) const {
    UpdateOperands o = Scalars(args);
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
    for (int i = 0; i < outputs_; ++i) {
      const int input = i == 0 ? +UpdatePort::kParam : first_state_ + i - 1;
      if (args.inputs[input] == args.outputs[i]) continue;
      std::memcpy(args.outputs[i], args.inputs[input], bytes_);
    }
  }

  int64_t n_;
  Update hyper_;
  unsigned set_;
  std::optional<LowUpdate> in_bf16_;  // of parameters that are

 private:
  int first_state_, outputs_;
  size_t bytes_;  // of each
};

template <typename Update>
class UpdateKernel : public UpdateOf<Update> {
  using Base = UpdateOf<Update>;
  using Base::hyper_, Base::in_bf16_, Base::n_, Base::set_;

 public:
  explicit UpdateKernel(const ir::Node& node) : Base(node, UpdatePort::kFirstState), low_(node) {
    this->writes_copies_ = true;
    if constexpr (ops::kHasTrustRatio<Update>) {
      this->workspace_bytes_ = static_cast<size_t>(SumBlocks()) * sizeof(Squares);
    }
  }

  void Run(const KernelArgs& args) override {
    if (!Base::Applies(args)) return Base::CopyThrough(args);
    UpdateOperands operands = in_bf16_.has_value() ? Base::Scalars(args) : Base::Operands(args);
    if constexpr (ops::kHasTrustRatio<Update>) operands.trust = Trust(args, operands);
    char* const copy = low_.Of(args);
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      if (copy == nullptr) return Step(args, operands, begin, end);
      for (int64_t at = begin; at < end; at += kRoundedPiece) {
        const int64_t stop = std::min(end, at + kRoundedPiece);
        Step(args, operands, at, stop);
        low_.Write(args.outputs[0], copy, at, stop);
      }
    });
  }

 private:
  using Squares = std::array<double, 2>;  // of parameter and direction

  LowCopy low_;

  // Elements [begin, end).
  void Step(const KernelArgs& args, const UpdateOperands& operands, int64_t begin,
            int64_t end) const {
    const auto fn = RangeOf(hyper_);
    if (!in_bf16_.has_value()) return fn(hyper_, set_, operands.At(begin), end - begin);
    in_bf16_->Update(args, operands, begin, end, begin,
                     [&](const UpdateOperands& block, int64_t n) { fn(hyper_, set_, block, n); });
  }

  int64_t SumBlocks() const { return (n_ + kSumBlock - 1) / kSumBlock; }

  float Trust(const KernelArgs& args, const UpdateOperands& operands) const {
    auto* const blocks = static_cast<Squares*>(args.workspace);
    const auto squares = SquaresOf(hyper_);
    ParallelFor(0, SumBlocks(), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const int64_t begin = b * kSumBlock, end = std::min(begin + kSumBlock, n_);
        if (!in_bf16_.has_value()) {
          squares(hyper_, set_, operands.At(begin), end - begin, blocks[b].data());
          continue;
        }
        blocks[b] = {0, 0};
        in_bf16_->Read(args, operands, begin, end, [&](const UpdateOperands& block, int64_t n) {
          Squares part;
          squares(hyper_, set_, block, n, part.data());
          blocks[b][0] += part[0];
          blocks[b][1] += part[1];
        });
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
  using Base::hyper_, Base::in_bf16_, Base::set_;

 public:
  explicit RowUpdateKernel(const ir::Node& node)
      : Base(node, RowUpdatePort::kFirstState),
        in_table_(node.output_type().shape[0]),
        width_(node.output_type().shape[1]),
        count_(node.input_type(RowUpdatePort::kIds).num_elements()) {}

  void Run(const KernelArgs& args) override {
    Base::CopyThrough(args);
    if (!Base::Applies(args) || width_ == 0) return;
    const auto* ids = static_cast<const int64_t*>(args.inputs[RowUpdatePort::kIds]);
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / width_);
    if (in_bf16_.has_value()) {
      const UpdateOperands scalars = Base::Scalars(args);
      return ParallelFor(0, count_, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) UpdateLowRow(args, scalars, ids[i], i);
      });
    }
    const UpdateOperands operands = Base::Operands(args);
    const auto fn = RowsOf(hyper_);
    ParallelFor(0, count_, grain, [&](int64_t begin, int64_t end) {
      UpdateOperands piece = operands;
      piece.grad += begin * width_;
      fn(hyper_, set_, piece, {ids + begin, end - begin, in_table_, width_});
    });
  }

 private:
  // Row `id`, whose gradient is row `i`.
  void UpdateLowRow(const KernelArgs& args, const UpdateOperands& scalars, int64_t id,
                    int64_t i) const {
    if (id < 0 || id >= in_table_) return;
    in_bf16_->Update(
        args, scalars, id * width_, (id + 1) * width_, i * width_,
        [&](const UpdateOperands& block, int64_t n) { RangeOf(hyper_)(hyper_, set_, block, n); });
  }

  int64_t in_table_, width_, count_;
};

}  // namespace

void Register_cpu_simd_optimizer(KernelRegistry& r) {
  ops::ForEachUpdate([&r]<typename Update>(const Update&) {
    AddSimdCandidate<UpdateKernel<Update>>(r, ops::kUpdateInfo<Update>.op, HasNoF64);
    if constexpr (ops::kIsRowWise<Update>) {
      AddSimdCandidate<RowUpdateKernel<Update>>(r, ops::RowUpdateOp<Update>(), HasNoF64);
    }
  });
}

}  // namespace halftone::kernels
#endif
