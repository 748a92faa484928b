// gru and gru_grad: for each step a product with weights packed once a run, and behind each tile of
// it the units of that tile, while it is in the first cache.
#include <algorithm>

#include "halftone/kernels/cpu/ops/gru_fns.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/kernels/cpu/simd/recurrence-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/recurrence.h"
#include "halftone/kernels/cpu/support/workspace_plan.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename T>
void GruTile(const GruStep& s, const StepTile& tile) {
  constexpr int64_t kStep = kLanes, kWidth = 3 * kStep;  // a vector of each gate
  const int64_t hidden = s.weights->columns;
  HWY_ALIGN float product[kTileRows * kWidth];
  MultiplyStrip(*s.weights, s.h, tile, product);
  const V one = Splat(1.0);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.row + r) * hidden + tile.column;
    const int64_t gates_at = 3 * (tile.row + r) * hidden + tile.column;
    const T* const x = static_cast<const T*>(s.x) + gates_at;
    T* const gates = static_cast<T*>(s.gates) + gates_at;
    const float* const row = product + r * kWidth;
    ForRow(tile.columns, [&](auto load, auto store) {
      const auto share = [&](int64_t gate) {
        const V product_of_gate = load(row + gate * kStep);
        if (s.b == nullptr) return product_of_gate;
        return hn::Add(product_of_gate, load(s.b + gate * hidden + tile.column));
      };
      const V reset = SigmoidV(hn::Add(load(x), share(0)));
      const V z = SigmoidV(hn::Add(load(x + hidden), share(1)));
      const V s_n = share(2);
      const V n = TanhV(hn::Add(load(x + 2 * hidden), hn::Mul(reset, s_n)));
      const V h = hn::Add(hn::Mul(hn::Sub(one, z), n), hn::Mul(z, load(s.state + at)));
      store(reset, gates);
      store(z, gates + hidden);
      store(n, gates + 2 * hidden);
      store(s_n, static_cast<T*>(s.share) + at);
      store(h, static_cast<T*>(s.y) + at);
      if (s.new_state != nullptr) store(h, s.new_state + at);
      if (s.y_wide != nullptr) store(RoundedTo<T>(h), s.y_wide + at);
    });
  }
}

template <typename T>
void GruGradTile(const GruGradStep& s, const StepTile& tile) {
  const int64_t hidden = s.weights->columns;
  HWY_ALIGN float product[kTileRows * kWideStrip];
  MultiplyStrip(*s.weights, s.a, tile, product);
  const V one = Splat(1.0);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.row + r) * hidden + tile.column;
    const int64_t gates_at = 3 * (tile.row + r) * hidden + tile.column;
    const T* const gates = static_cast<const T*>(s.gates) + gates_at;
    T *const dx = static_cast<T*>(s.dx) + gates_at, *const ds = static_cast<T*>(s.ds) + gates_at;
    const float* const row = product + r * kWideStrip;
    ForRow(tile.columns, [&](auto load, auto store) {
      const V reset = load(gates), z = load(gates + hidden), n = load(gates + 2 * hidden);
      const V keeps = hn::Sub(one, z);
      const V e =
          hn::Add(hn::Add(load(row), load(static_cast<const T*>(s.dh) + at)), load(s.kept + at));
      const V dn = hn::Mul(hn::Mul(e, keeps), hn::Sub(one, hn::Mul(n, n)));
      const V of_reset = hn::Mul(hn::Mul(dn, load(static_cast<const T*>(s.share) + at)),
                                 hn::Mul(reset, hn::Sub(one, reset)));
      const V moved = hn::Sub(load(static_cast<const T*>(s.h_before) + at), n);
      const V of_z = hn::Mul(hn::Mul(e, moved), hn::Mul(z, keeps));
      const V of_n = hn::Mul(dn, reset);
      store(hn::Mul(e, z), s.kept + at);
      store(of_reset, dx);
      store(of_z, dx + hidden);
      store(dn, dx + 2 * hidden);
      const V of_share[3] = {of_reset, of_z, of_n};
      for (int64_t gate = 0; gate < 3; ++gate) {
        store(of_share[gate], ds + gate * hidden);
        if (s.ds_wide != nullptr) {
          store(RoundedTo<T>(of_share[gate]), s.ds_wide + gates_at + gate * hidden);
        }
      }
    });
  }
}

template <typename T>
GruFns GruFnsOf() {
  return {GruTile<T>, GruGradTile<T>, ProductTile<T>, PackStrip<T>, kLanes, kWideStrip};
}

GruFns FindGru(DType dtype) {
  return dtype == DType::kF32   ? GruFnsOf<float>()
         : dtype == DType::kF16 ? GruFnsOf<F16>()
                                : GruFnsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindGru);

// Arrays of a run, in the workspace.
struct GruPlan : WorkspacePlan {
  // `state`: what goes from step to step in f32; `read`: what the next step multiplies, twice.
  GruPlan(const StripedWeights& weights, int64_t state, int64_t read)
      : weights_at(Take(weights.floats())),
        state_at(Take(state)),
        read_at{Take(read), Take(read)} {}
  int64_t weights_at, state_at, read_at[2];
};

class GruKernel : public Kernel {
 public:
  explicit GruKernel(const ir::Node& node)
      : shape_(node, 3),
        fns_(HWY_DYNAMIC_DISPATCH(FindGru)(shape_.dtype)),
        weights_({shape_.hidden, 3, shape_.hidden, fns_.lanes, shape_.hidden * shape_.hidden,
                  shape_.hidden, 1},
                 shape_.batch),
        plan_(weights_, shape_.is_wide() ? 0 : shape_.batch * shape_.hidden,
              shape_.is_wide() ? 0 : shape_.batch * shape_.hidden),
        biased_(node.num_inputs() > kBias) {
    workspace_bytes_ = static_cast<size_t>(plan_.size()) * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    float* const work = static_cast<float*>(args.workspace);
    weights_.Pack(fns_.pack, args.inputs[kW], work + plan_.weights_at);
    const int64_t hidden = shape_.hidden;
    const auto* h = static_cast<const float*>(args.inputs[kH0]);
    const float* state = h;
    if (!shape_.is_wide()) {
      for (const int64_t at : {plan_.state_at, plan_.read_at[1]}) {
        Convert(args.inputs[kH0], shape_.dtype, work + at, DType::kF32, shape_.batch * hidden);
      }
      h = work + plan_.read_at[1];
      state = work + plan_.state_at;
    }
    for (int64_t i = 0; i < shape_.steps; ++i) {
      const int64_t t = shape_.At(i);
      const bool wide = shape_.is_wide();
      const GruStep step{&weights_.shape(),
                         h,
                         biased_ ? static_cast<const float*>(args.inputs[kBias]) : nullptr,
                         shape_.Step(args.inputs[kX], t, 3 * hidden),
                         shape_.Step(args.outputs[1], t, 3 * hidden),
                         shape_.Step(args.outputs[2], t, hidden),
                         state,
                         wide ? nullptr : work + plan_.state_at,
                         shape_.Step(args.outputs[0], t, hidden),
                         wide ? nullptr : work + plan_.read_at[i % 2]};
      weights_.ForTiles(work + plan_.weights_at,
                        [&](const StepTile& tile) { fns_.step(step, tile); });
      h = wide ? static_cast<const float*>(step.y) : step.y_wide;
      state = wide ? h : step.new_state;
    }
  }

 private:
  enum { kX, kW, kH0, kBias };
  RecurrenceShape shape_;
  GruFns fns_;
  StripedWeights weights_;
  GruPlan plan_;
  bool biased_;
};

class GruGradKernel : public Kernel {
 public:
  explicit GruGradKernel(const ir::Node& node)
      : shape_(node, 3),
        fns_(HWY_DYNAMIC_DISPATCH(FindGru)(shape_.dtype)),
        weights_({3 * shape_.hidden, 1, shape_.hidden, fns_.wide_strip, 0, 1, shape_.hidden},
                 shape_.batch),
        plan_(weights_, shape_.batch * shape_.hidden,
              shape_.is_wide() ? 0 : shape_.batch * 3 * shape_.hidden) {
    workspace_bytes_ = static_cast<size_t>(plan_.size()) * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    float* const work = static_cast<float*>(args.workspace);
    weights_.Pack(fns_.pack, args.inputs[kW], work + plan_.weights_at);
    const int64_t hidden = shape_.hidden;
    float* const kept = work + plan_.state_at;
    std::fill_n(kept, shape_.batch * hidden, 0.0f);
    const float* ds = nullptr;  // of the step after
    for (int64_t i = shape_.steps - 1; i >= 0; --i) {
      const int64_t t = shape_.At(i);
      const GruGradStep step{
          &weights_.shape(),
          ds,
          shape_.Step(args.inputs[kGates], t, 3 * hidden),
          shape_.Step(args.inputs[kShare], t, hidden),
          i == 0 ? args.inputs[kH0] : shape_.Step(args.inputs[kH], shape_.At(i - 1), hidden),
          shape_.Step(args.inputs[kDh], t, hidden),
          kept,
          shape_.Step(args.outputs[0], t, 3 * hidden),
          shape_.Step(args.outputs[2], t, 3 * hidden),
          shape_.is_wide() ? nullptr : work + plan_.read_at[i % 2]};
      weights_.ForTiles(work + plan_.weights_at,
                        [&](const StepTile& tile) { fns_.grad_step(step, tile); });
      ds = step.ds_wide != nullptr ? step.ds_wide : static_cast<const float*>(step.ds);
    }
    const ProductStep product{&weights_.shape(), ds, nullptr, kept, args.outputs[1], nullptr};
    weights_.ForTiles(work + plan_.weights_at,
                      [&](const StepTile& tile) { fns_.product(product, tile); });
  }

 private:
  enum { kGates, kW, kH0, kH, kShare, kDh };
  RecurrenceShape shape_;
  GruFns fns_;
  StripedWeights weights_;
  GruPlan plan_;
};

}  // namespace

void Register_cpu_simd_gru(KernelRegistry& r) {
  AddSimdCandidate<GruKernel>(r, "gru", PlainInputs);
  AddSimdCandidate<GruGradKernel>(r, "gru_grad", PlainInputs);
}

}  // namespace halftone::kernels
#endif
