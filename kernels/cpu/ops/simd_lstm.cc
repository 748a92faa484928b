// lstm and lstm_grad: for each step a product with weights packed once a run, and behind each tile of
// it the cells of that tile, while it is in the first cache.
#include <algorithm>
#include <cstring>
#include <optional>

#include "halftone/kernels/cpu/ops/lstm_fns.h"
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
void LstmTile(const LstmStep& s, const StepTile& tile) {
  constexpr int64_t kWidth = 4 * kLanes;  // a vector of each gate
  const int64_t hidden = s.weights->columns;
  HWY_ALIGN float product[kTileRows * kWidth];
  MultiplyStrip(*s.weights, s.h, tile, product);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.row + r) * hidden + tile.column;
    const int64_t gates_at = 4 * (tile.row + r) * hidden + tile.column;
    const T* const x = static_cast<const T*>(s.x) + gates_at;
    T* const gates = static_cast<T*>(s.gates) + gates_at;
    const float* const row = product + r * kWidth;
    ForRow(tile.columns, [&](auto load, auto store) {
      const auto sum = [&](int64_t gate) {
        return hn::Add(load(x + gate * hidden), load(row + gate * static_cast<int64_t>(kLanes)));
      };
      const V i = SigmoidV(sum(0)), f = SigmoidV(sum(1)), g = TanhV(sum(2)), o = SigmoidV(sum(3));
      const V c = hn::Add(hn::Mul(f, load(s.c_before + at)), hn::Mul(i, g));
      const V m = hn::Mul(o, TanhV(c));
      store(i, gates);
      store(f, gates + hidden);
      store(g, gates + 2 * hidden);
      store(o, gates + 3 * hidden);
      store(c, s.c + at);
      if (s.m != nullptr) store(m, static_cast<T*>(s.m) + at);
      if (s.m_wide != nullptr) store(RoundedTo<T>(m), s.m_wide + at);
    });
  }
}

template <typename T>
void LstmGradTile(const LstmGradStep& s, const StepTile& tile) {
  const int64_t hidden = s.weights->columns;
  HWY_ALIGN float product[kTileRows * kWideStrip];
  MultiplyStrip(*s.weights, s.a, tile, product);
  const V one = Splat(1.0);
  // dy times the slope of sigmoid, or of tanh, where it gave y.
  const auto of_sigmoid = [one](V dy, V y) { return hn::Mul(dy, hn::Mul(y, hn::Sub(one, y))); };
  const auto of_tanh = [one](V dy, V y) { return hn::Mul(dy, hn::Sub(one, hn::Mul(y, y))); };
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.row + r) * hidden + tile.column;
    const int64_t gates_at = 4 * (tile.row + r) * hidden + tile.column;
    const T* const gates = static_cast<const T*>(s.gates) + gates_at;
    T* const dx = static_cast<T*>(s.dx) + gates_at;
    const float* const row = product + r * kWideStrip;
    ForRow(tile.columns, [&](auto load, auto store) {
      V dm = load(row);
      if (s.dh != nullptr) {
        dm = hn::Add(dm, load(static_cast<const T*>(s.dh) + at));
        store(dm, static_cast<T*>(s.dh_sum) + at);
      }
      const V i = load(gates), f = load(gates + hidden);
      const V g = load(gates + 2 * hidden), o = load(gates + 3 * hidden);
      const V tanh_c = TanhV(load(s.c + at));
      const V dc = hn::Add(load(s.dc + at), of_tanh(hn::Mul(dm, o), tanh_c));
      const V slopes[4] = {of_sigmoid(hn::Mul(dc, g), i),
                           of_sigmoid(hn::Mul(dc, load(s.c_before + at)), f),
                           of_tanh(hn::Mul(dc, i), g), of_sigmoid(hn::Mul(dm, tanh_c), o)};
      store(hn::Mul(dc, f), s.dc + at);
      for (int64_t gate = 0; gate < 4; ++gate) {
        store(slopes[gate], dx + gate * hidden);
        if (s.dx_wide != nullptr) {
          store(RoundedTo<T>(slopes[gate]), s.dx_wide + gates_at + gate * hidden);
        }
      }
    });
  }
}

template <typename T>
LstmFns LstmFnsOf() {
  return {LstmTile<T>, LstmGradTile<T>, ProductTile<T>, PackStrip<T>, kLanes, kWideStrip};
}

LstmFns FindLstm(DType dtype) {
  return dtype == DType::kF32   ? LstmFnsOf<float>()
         : dtype == DType::kF16 ? LstmFnsOf<F16>()
                                : LstmFnsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindLstm);

// Arrays of a run, in the workspace.
struct LstmPlan : WorkspacePlan {
  // `states`: of what the next step multiplies, twice where it is not an output as it is.
  LstmPlan(const StripedWeights& weights, const std::optional<StripedWeights>& projection,
           int64_t projected, int64_t states)
      : weights_at(Take(weights.floats())),
        projection_at(Take(projection ? projection->floats() : 0)),
        projected_at(Take(projection ? projected : 0)),
        states_at{Take(states), Take(states)} {}
  int64_t weights_at, projection_at, projected_at, states_at[2];
};

class LstmKernel : public Kernel {
 public:
  explicit LstmKernel(const ir::Node& node)
      : shape_(node, 4),
        fns_(HWY_DYNAMIC_DISPATCH(FindLstm)(shape_.dtype)),
        weights_({shape_.features, 4, shape_.hidden, fns_.lanes, shape_.hidden * shape_.features,
                  shape_.features, 1},
                 shape_.batch),
        projection_(node.num_inputs() > kProjection
                        ? std::optional<StripedWeights>({{shape_.hidden, 1, shape_.features,
                                                          fns_.wide_strip, 0, shape_.hidden, 1},
                                                         shape_.batch})
                        : std::nullopt),
        plan_(weights_, projection_, shape_.batch * shape_.hidden,
              shape_.is_wide() ? 0 : shape_.batch * shape_.features) {
    workspace_bytes_ = static_cast<size_t>(plan_.size()) * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    float* const work = static_cast<float*>(args.workspace);
    weights_.Pack(fns_.pack, args.inputs[kW], work + plan_.weights_at);
    if (projection_) {
      projection_->Pack(fns_.pack, args.inputs[kProjection], work + plan_.projection_at);
    }
    const int64_t hidden = shape_.hidden, features = shape_.features;
    const auto* h = static_cast<const float*>(args.inputs[kH0]);
    if (!shape_.is_wide()) {
      float* const first = work + plan_.states_at[1];
      Convert(args.inputs[kH0], shape_.dtype, first, DType::kF32, shape_.batch * features);
      h = first;
    }
    const auto* c = static_cast<const float*>(args.inputs[kC0]);
    for (int64_t i = 0; i < shape_.steps; ++i) {
      const int64_t t = shape_.At(i);
      void* const y = shape_.Step(args.outputs[0], t, features);
      float* const next = shape_.is_wide() ? nullptr : work + plan_.states_at[i % 2];
      LstmStep step{&weights_.shape(),
                    h,
                    shape_.Step(args.inputs[kX], t, 4 * hidden),
                    shape_.Step(args.outputs[3], t, 4 * hidden),
                    c,
                    shape_.WideStep(args.outputs[2], t, hidden),
                    y,
                    next};
      if (projection_) {
        step.m = nullptr;
        step.m_wide = work + plan_.projected_at;
      }
      weights_.ForTiles(work + plan_.weights_at,
                        [&](const StepTile& tile) { fns_.step(step, tile); });
      if (projection_) {
        const ProductStep product{&projection_->shape(), step.m_wide, nullptr, nullptr, y, next};
        projection_->ForTiles(work + plan_.projection_at,
                              [&](const StepTile& tile) { fns_.product(product, tile); });
      }
      h = next != nullptr ? next : static_cast<const float*>(y);
      c = step.c;
    }
    std::memcpy(args.outputs[1], c, static_cast<size_t>(shape_.batch * hidden) * sizeof(float));
  }

 private:
  enum { kX, kW, kH0, kC0, kProjection };
  RecurrenceShape shape_;
  LstmFns fns_;
  StripedWeights weights_;
  std::optional<StripedWeights> projection_;
  LstmPlan plan_;
};

class LstmGradKernel : public Kernel {
 public:
  explicit LstmGradKernel(const ir::Node& node)
      : shape_(node, 4),
        fns_(HWY_DYNAMIC_DISPATCH(FindLstm)(shape_.dtype)),
        weights_({4 * shape_.hidden, 1, shape_.features, fns_.wide_strip, 0, 1, shape_.features},
                 shape_.batch),
        projection_(node.num_inputs() > kProjection
                        ? std::optional<StripedWeights>({{shape_.features, 1, shape_.hidden,
                                                          fns_.wide_strip, 0, 1, shape_.hidden},
                                                         shape_.batch})
                        : std::nullopt),
        plan_(weights_, projection_, shape_.batch * shape_.features,
              shape_.is_wide() ? 0 : shape_.batch * 4 * shape_.hidden) {
    workspace_bytes_ = static_cast<size_t>(plan_.size()) * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    float* const work = static_cast<float*>(args.workspace);
    weights_.Pack(fns_.pack, args.inputs[kW], work + plan_.weights_at);
    if (projection_) {
      projection_->Pack(fns_.pack, args.inputs[kProjection], work + plan_.projection_at);
    }
    const int64_t hidden = shape_.hidden, features = shape_.features;
    auto* const dc = static_cast<float*>(args.outputs[2]);
    if (args.inputs[kDcn] != dc) {
      std::memcpy(dc, args.inputs[kDcn],
                  static_cast<size_t>(shape_.batch * hidden) * sizeof(float));
    }
    const float* dx = nullptr;  // of the step after
    for (int64_t i = shape_.steps - 1; i >= 0; --i) {
      const int64_t t = shape_.At(i);
      LstmGradStep step{&weights_.shape(),
                        dx,
                        shape_.Step(args.inputs[kDh], t, features),
                        shape_.Step(args.outputs[3], t, features),
                        shape_.Step(args.inputs[kGates], t, 4 * hidden),
                        shape_.WideStep(args.inputs[kC], t, hidden),
                        i == 0 ? static_cast<const float*>(args.inputs[kC0])
                               : shape_.WideStep(args.inputs[kC], shape_.At(i - 1), hidden),
                        dc,
                        shape_.Step(args.outputs[0], t, 4 * hidden),
                        shape_.is_wide() ? nullptr : work + plan_.states_at[i % 2]};
      const auto run_cells = [&](const StepTile& tile) { fns_.grad_step(step, tile); };
      if (projection_) {
        const ProductStep product{&weights_.shape(), dx,          step.dh,
                                  nullptr,           step.dh_sum, work + plan_.projected_at};
        weights_.ForTiles(work + plan_.weights_at,
                          [&](const StepTile& tile) { fns_.product(product, tile); });
        step.weights = &projection_->shape();
        step.a = product.y_wide;
        step.dh = nullptr;
        projection_->ForTiles(work + plan_.projection_at, run_cells);
      } else {
        weights_.ForTiles(work + plan_.weights_at, run_cells);
      }
      dx = step.dx_wide != nullptr ? step.dx_wide : static_cast<const float*>(step.dx);
    }
    const ProductStep product{&weights_.shape(), dx, nullptr, nullptr, args.outputs[1], nullptr};
    weights_.ForTiles(work + plan_.weights_at,
                      [&](const StepTile& tile) { fns_.product(product, tile); });
  }

 private:
  enum { kGates, kW, kC0, kC, kDh, kDcn, kProjection };
  RecurrenceShape shape_;
  LstmFns fns_;
  StripedWeights weights_;
  std::optional<StripedWeights> projection_;
  LstmPlan plan_;
};

}  // namespace

void Register_cpu_simd_lstm(KernelRegistry& r) {
  AddSimdCandidate<LstmKernel>(r, "lstm", PlainInputs);
  AddSimdCandidate<LstmGradKernel>(r, "lstm_grad", PlainInputs);
}

}  // namespace halftone::kernels
#endif
