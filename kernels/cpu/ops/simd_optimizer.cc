// Optimizer updates and gradient statistics: one pass over each tensor, f32 storage. A cleared
// `apply` flag copies every input to its output bit for bit. Formulas and order of operations:
// PyTorch's single-tensor SGD and Adam (the op records give the pages).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halftone/kernels/cpu/ops/simd_optimizer.cc"
#include "halftone/kernels/cpu/simd/targets.h"
// Highway reads the macro that the line above defines.
#include <hwy/foreach_target.h>
// The rest is included once per target.
#include <cmath>
#include <cstring>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/optimizer_steps.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;
HWY_INLINE V SetF(float c) { return hn::Set(F32Tag(), c); }

// The gradient unscaled and clipped; NaN passes.
template <typename Step>
HWY_INLINE V TrueGradient(const Step& s, V scaled) {
  V g = hn::Mul(hn::Mul(scaled, SetF(s.inv_scale)), SetF(s.clip));
  if (s.clip_value > 0) {
    const V largest = SetF(s.clip_value), smallest = SetF(-s.clip_value);
    g = hn::IfThenElse(hn::Gt(g, largest), largest, g);
    g = hn::IfThenElse(hn::Lt(g, smallest), smallest, g);
  }
  return g;
}

void SgdRange(const SgdStep& s, const SgdArrays& a, int64_t n) {
  ForRow(n, [&](auto load, auto store) {
    V g = TrueGradient(s, load(a.grad));
    const V p = load(a.param);
    if (s.weight_decay != 0) g = hn::Add(g, hn::Mul(SetF(s.weight_decay), p));
    if (a.buffer != nullptr) {
      const V old = load(a.buffer);
      const V buf = s.first ? g
                            : hn::Add(hn::Mul(SetF(s.momentum), old),
                                      hn::Mul(SetF(s.one_minus_dampening), g));
      store(buf, a.buffer_out);
      g = s.nesterov ? hn::Add(g, hn::Mul(SetF(s.momentum), buf)) : buf;
    }
    store(hn::Sub(p, hn::Mul(SetF(s.lr), g)), a.param_out);
  });
}

void AdamRange(const AdamStep& s, const AdamArrays& a, int64_t n) {
  ForRow(n, [&](auto load, auto store) {
    V g = TrueGradient(s, load(a.grad));
    V p = load(a.param);
    if (s.weight_decay != 0) g = hn::Add(g, hn::Mul(SetF(s.weight_decay), p));
    if (s.decay != 1) p = hn::Mul(p, SetF(s.decay));
    const V m0 = load(a.exp_avg), v0 = load(a.exp_avg_sq);
    const V m = hn::Add(m0, hn::Mul(SetF(s.one_minus_beta1), hn::Sub(g, m0)));
    const V v =
        hn::Add(hn::Mul(v0, SetF(s.beta2)), hn::Mul(SetF(s.one_minus_beta2), hn::Mul(g, g)));
    store(m, a.exp_avg_out);
    store(v, a.exp_avg_sq_out);
    const V denominator = hn::Add(hn::Div(hn::Sqrt(v), SetF(s.bias_correction2_sqrt)), SetF(s.eps));
    store(hn::Sub(p, hn::Mul(SetF(s.step_size), hn::Div(m, denominator))), a.param_out);
  });
}

// Sum of squares of g * inv_scale in f64; clears *finite on inf or NaN.
#if HWY_TARGET == HWY_SCALAR
double StatsRange(const float* g, float inv_scale, int64_t n, bool* finite) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float v = g[i] * inv_scale;
    if (!std::isfinite(v)) *finite = false;
    sum += static_cast<double>(v) * v;
  }
  return sum;
}
#else
double StatsRange(const float* g, float inv_scale, int64_t n, bool* finite) {
  const hn::Half<F32Tag> dh;
  const hn::Rebind<double, decltype(dh)> dd;
  auto sum_lo = hn::Zero(dd), sum_hi = hn::Zero(dd);
  bool all_finite = true;
  ForRow(n, [&](auto load, auto) {
    const V v = hn::Mul(load(g), SetF(inv_scale));
    all_finite = all_finite && hn::AllTrue(F32Tag(), hn::IsFinite(v));
    const auto lo = hn::PromoteTo(dd, hn::LowerHalf(dh, v));
    const auto hi = hn::PromoteTo(dd, hn::UpperHalf(dh, v));
    sum_lo = hn::Add(sum_lo, hn::Mul(lo, lo));
    sum_hi = hn::Add(sum_hi, hn::Mul(hi, hi));
  });
  if (!all_finite) *finite = false;
  return hn::GetLane(hn::SumOfLanes(dd, hn::Add(sum_lo, sum_hi)));
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(SgdRange);
HWY_EXPORT(AdamRange);
HWY_EXPORT(StatsRange);

float ScalarF32(const KernelArgs& args, int port) {
  return *static_cast<const float*>(args.inputs[port]);
}

// Ports that sgd_update and adam_update share; see graph/ops/optimizer_updates.cc.
enum Port { kParam, kGrad, kLr, kInvScale, kClip, kApply, kStep, kState };

void CopyThrough(const KernelArgs& args, int input, int output, size_t bytes) {
  if (args.inputs[input] != args.outputs[output])
    std::memcpy(args.outputs[output], args.inputs[input], bytes);
}

class SgdKernel : public Kernel {
 public:
  explicit SgdKernel(const ir::Node& node)
      : n_(node.output_type().num_elements()),
        momentum_(node.attrs().GetFloat("momentum")),
        dampening_(node.attrs().GetFloat("dampening")),
        weight_decay_(node.attrs().GetFloat("weight_decay")),
        clip_value_(node.attrs().GetFloat("clip_value")),
        nesterov_(node.attrs().GetBool("nesterov")),
        has_buffer_(node.num_inputs() > kState) {}

  void Run(const KernelArgs& args) override {
    if (!*static_cast<const bool*>(args.inputs[kApply])) {
      CopyThrough(args, kParam, 0, n_ * sizeof(float));
      if (has_buffer_) CopyThrough(args, kState, 1, n_ * sizeof(float));
      return;
    }
    SgdStep step;
    step.lr = ScalarF32(args, kLr);
    step.inv_scale = ScalarF32(args, kInvScale);
    step.clip = ScalarF32(args, kClip);
    step.clip_value = static_cast<float>(clip_value_);
    step.momentum = static_cast<float>(momentum_);
    step.one_minus_dampening = static_cast<float>(1 - dampening_);
    step.weight_decay = static_cast<float>(weight_decay_);
    step.nesterov = nesterov_;
    step.first = *static_cast<const int64_t*>(args.inputs[kStep]) == 1;
    const auto fn = HWY_DYNAMIC_DISPATCH(SgdRange);
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      SgdArrays a;
      a.param = static_cast<const float*>(args.inputs[kParam]) + begin;
      a.grad = static_cast<const float*>(args.inputs[kGrad]) + begin;
      a.param_out = static_cast<float*>(args.outputs[0]) + begin;
      if (has_buffer_) {
        a.buffer = static_cast<const float*>(args.inputs[kState]) + begin;
        a.buffer_out = static_cast<float*>(args.outputs[1]) + begin;
      }
      fn(step, a, end - begin);
    });
  }

 private:
  int64_t n_;
  double momentum_, dampening_, weight_decay_, clip_value_;
  bool nesterov_, has_buffer_;
};

class AdamKernel : public Kernel {
 public:
  explicit AdamKernel(const ir::Node& node)
      : n_(node.output_type().num_elements()),
        beta1_(node.attrs().GetFloat("beta1")),
        beta2_(node.attrs().GetFloat("beta2")),
        eps_(node.attrs().GetFloat("eps")),
        weight_decay_(node.attrs().GetFloat("weight_decay")),
        clip_value_(node.attrs().GetFloat("clip_value")),
        decoupled_(node.attrs().GetBool("decoupled")) {}

  void Run(const KernelArgs& args) override {
    if (!*static_cast<const bool*>(args.inputs[kApply])) {
      for (int i = 0; i < 3; ++i)
        CopyThrough(args, i == 0 ? kParam : kStep + i, i, n_ * sizeof(float));
      return;
    }
    const double lr = ScalarF32(args, kLr);
    const double t = static_cast<double>(*static_cast<const int64_t*>(args.inputs[kStep]));
    AdamStep step;
    step.inv_scale = ScalarF32(args, kInvScale);
    step.clip = ScalarF32(args, kClip);
    step.clip_value = static_cast<float>(clip_value_);
    step.one_minus_beta1 = static_cast<float>(1 - beta1_);
    step.beta2 = static_cast<float>(beta2_);
    step.one_minus_beta2 = static_cast<float>(1 - beta2_);
    step.eps = static_cast<float>(eps_);
    step.weight_decay = decoupled_ ? 0 : static_cast<float>(weight_decay_);
    step.decay = decoupled_ ? static_cast<float>(1 - lr * weight_decay_) : 1;
    step.step_size = static_cast<float>(lr / (1 - std::pow(beta1_, t)));
    step.bias_correction2_sqrt = static_cast<float>(std::sqrt(1 - std::pow(beta2_, t)));
    const auto fn = HWY_DYNAMIC_DISPATCH(AdamRange);
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      AdamArrays a;
      a.param = static_cast<const float*>(args.inputs[kParam]) + begin;
      a.grad = static_cast<const float*>(args.inputs[kGrad]) + begin;
      a.exp_avg = static_cast<const float*>(args.inputs[kState]) + begin;
      a.exp_avg_sq = static_cast<const float*>(args.inputs[kState + 1]) + begin;
      a.param_out = static_cast<float*>(args.outputs[0]) + begin;
      a.exp_avg_out = static_cast<float*>(args.outputs[1]) + begin;
      a.exp_avg_sq_out = static_cast<float*>(args.outputs[2]) + begin;
      fn(step, a, end - begin);
    });
  }

 private:
  int64_t n_;
  double beta1_, beta2_, eps_, weight_decay_, clip_value_;
  bool decoupled_;
};

// Ports: inv_scale, then the gradients. Partial sums per fixed block, added in order: the norm does
// not depend on the threads.
class GradStatsKernel : public Kernel {
 public:
  explicit GradStatsKernel(const ir::Node& node) {
    for (int i = 1; i < node.num_inputs(); ++i) {
      const int64_t n = node.input_type(i).num_elements();
      for (int64_t begin = 0; begin < n; begin += kBlock) {
        blocks_.push_back({i, begin, std::min(kBlock, n - begin)});
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
  static constexpr int64_t kBlock = 8192;
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
  AddSimdCandidate<SgdKernel>(r, "sgd_update", AllF32);
  AddSimdCandidate<AdamKernel>(r, "adam_update", AllF32);
  AddSimdCandidate<GradStatsKernel>(r, "grad_stats", AllF32);
}

}  // namespace halftone::kernels
#endif
