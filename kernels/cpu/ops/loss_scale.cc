// loss_scale_update: six scalars.
#include <algorithm>
#include <cmath>

#include "halftone/kernels/cpu/support/native_kernel.h"

namespace halftone::kernels {
namespace {

class LossScaleKernel : public Kernel {
 public:
  explicit LossScaleKernel(const ir::Node& node)
      : growth_(node.attrs().GetFloat("growth_factor")),
        backoff_(node.attrs().GetFloat("backoff_factor")),
        min_scale_(node.attrs().GetFloat("min_scale")),
        max_scale_(node.attrs().GetFloat("max_scale")),
        interval_(node.attrs().GetInt("growth_interval")),
        hysteresis_(node.attrs().GetInt("hysteresis")),
        dynamic_(node.attrs().GetBool("dynamic")) {}

  // Outputs may be the inputs in place: everything is read first.
  void Run(const KernelArgs& args) override {
    float scale = *static_cast<const float*>(args.inputs[0]);
    int64_t tracker = *static_cast<const int32_t*>(args.inputs[1]);
    int64_t left = *static_cast<const int32_t*>(args.inputs[2]);
    const int64_t total = *static_cast<const int64_t*>(args.inputs[3]);
    const int64_t skipped = *static_cast<const int64_t*>(args.inputs[4]);
    const int64_t consecutive = *static_cast<const int64_t*>(args.inputs[5]);
    const bool finite = *static_cast<const bool*>(args.inputs[6]);
    if (dynamic_ && finite) {
      left = hysteresis_;
      if (++tracker >= interval_) {
        tracker = 0;
        const auto grown = static_cast<float>(scale * growth_);
        if (std::isfinite(grown) && static_cast<double>(grown) <= max_scale_) scale = grown;
      }
    } else if (dynamic_) {
      tracker = 0;
      left = std::max<int64_t>(left - 1, 0);
      const double floor = std::min<double>(scale, min_scale_);  // never raises
      if (left == 0) scale = static_cast<float>(std::max(scale * backoff_, floor));
    }
    *static_cast<float*>(args.outputs[0]) = scale;
    *static_cast<int32_t*>(args.outputs[1]) = static_cast<int32_t>(tracker);
    *static_cast<int32_t*>(args.outputs[2]) = static_cast<int32_t>(left);
    *static_cast<int64_t*>(args.outputs[3]) = total + 1;
    *static_cast<int64_t*>(args.outputs[4]) = skipped + (finite ? 0 : 1);
    *static_cast<int64_t*>(args.outputs[5]) = finite ? 0 : consecutive + 1;
  }

 private:
  double growth_, backoff_, min_scale_, max_scale_;
  int64_t interval_, hysteresis_;
  bool dynamic_;
};

}  // namespace

void Register_cpu_loss_scale(KernelRegistry& r) {
  AddNativeCandidate<LossScaleKernel>(r, "scalar", "loss_scale_update", {DType::kF32}, nullptr);
}

}  // namespace halftone::kernels
