// sgd_update and adam_update: the gradient is unscaled and clipped by two products in the type of
// the parameter, the rest is computed in f64 and rounded once.
#include <cmath>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

enum UpdatePort { kParam, kGrad, kLr, kInvScale, kClip, kApply, kStep, kFirstState };

// `T`: the type of the parameter.
template <typename T>
double TrueGradient(const RefCall& call, int64_t i, double clip_value) {
  const T g = static_cast<T>(call.Load(kGrad, i)) * static_cast<T>(call.Load(kInvScale, 0)) *
              static_cast<T>(call.Load(kClip, 0));
  const T largest = static_cast<T>(clip_value);
  if (largest <= 0) return g;
  return g > largest ? largest : g < -largest ? -largest : g;  // NaN passes
}

double TrueGradient(const RefCall& call, int64_t i, double clip_value, bool f64) {
  return f64 ? TrueGradient<double>(call, i, clip_value) : TrueGradient<float>(call, i, clip_value);
}

// A skipped step: output 0 is the parameter, the others the states.
void CopyUpdate(const RefCall& call, int64_t size, int outputs) {
  for (int o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < size; ++i) call.Copy(o == 0 ? kParam : kStep + o, i, o, i);
  }
}

RefRun MakeSgdUpdate(RefNode& node) {
  const int64_t size = node.in(0).num_elements();
  const bool f64 = node.inputs[kParam].dtype == DType::kF64;
  const bool has_buffer = node.has_in(kFirstState);
  const double momentum = node.attrs.GetFloat("momentum");
  const double dampening = node.attrs.GetFloat("dampening");
  const double weight_decay = node.attrs.GetFloat("weight_decay");
  const double clip_value = node.attrs.GetFloat("clip_value");
  const bool nesterov = node.attrs.GetBool("nesterov");
  return [=](const RefCall& call) {
    if (call.LoadInt(kApply, 0) == 0) return CopyUpdate(call, size, has_buffer ? 2 : 1);
    const double lr = call.Load(kLr, 0);
    const bool first = call.LoadInt(kStep, 0) == 1;
    for (int64_t i = 0; i < size; ++i) {
      const double param = call.Load(kParam, i);
      double d = TrueGradient(call, i, clip_value, f64) + weight_decay * param;
      if (has_buffer) {
        const double buffer =
            first ? d : momentum * call.Load(kFirstState, i) + (1 - dampening) * d;
        d = nesterov ? d + momentum * buffer : buffer;
        call.Store(1, i, buffer);
      }
      call.Store(0, i, param - lr * d);
    }
  };
}

RefRun MakeAdamUpdate(RefNode& node) {
  const int64_t size = node.in(0).num_elements();
  const bool f64 = node.inputs[kParam].dtype == DType::kF64;
  const double beta1 = node.attrs.GetFloat("beta1"), beta2 = node.attrs.GetFloat("beta2");
  const double eps = node.attrs.GetFloat("eps");
  const double weight_decay = node.attrs.GetFloat("weight_decay");
  const double clip_value = node.attrs.GetFloat("clip_value");
  const bool decoupled = node.attrs.GetBool("decoupled");
  return [=](const RefCall& call) {
    if (call.LoadInt(kApply, 0) == 0) return CopyUpdate(call, size, 3);
    const double lr = call.Load(kLr, 0), step = static_cast<double>(call.LoadInt(kStep, 0));
    const double step_size = lr / (1 - std::pow(beta1, step));
    const double root_correction = std::sqrt(1 - std::pow(beta2, step));
    for (int64_t i = 0; i < size; ++i) {
      double param = call.Load(kParam, i), g = TrueGradient(call, i, clip_value, f64);
      if (decoupled) {
        param *= 1 - lr * weight_decay;
      } else {
        g += weight_decay * param;
      }
      const double m = call.Load(kFirstState, i) + (1 - beta1) * (g - call.Load(kFirstState, i));
      const double v = beta2 * call.Load(kFirstState + 1, i) + (1 - beta2) * g * g;
      call.Store(0, i, param - step_size * m / (std::sqrt(v) / root_correction + eps));
      call.Store(1, i, m);
      call.Store(2, i, v);
    }
  };
}

}  // namespace

void Register_reference_optimizer_updates(KernelRegistry& r) {
  const ir::DTypeSet masters{DType::kF64, DType::kF32};
  AddReference(r, "sgd_update", masters, MakeSgdUpdate);
  AddReference(r, "adam_update", masters, MakeAdamUpdate);
}

}  // namespace halftone::kernels
