// loss_scale_update: six scalars.
#include "halftone/kernels/cuda/ops/loss_scale.h"

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

class LossScaleKernel : public CudaKernel {
 public:
  explicit LossScaleKernel(const ir::Node& node) {
    const ir::Attributes& attrs = node.attrs();
    rule_.growth = attrs.GetFloat("growth_factor");
    rule_.backoff = attrs.GetFloat("backoff_factor");
    rule_.min_scale = attrs.GetFloat("min_scale");
    rule_.max_scale = attrs.GetFloat("max_scale");
    rule_.interval = static_cast<int32_t>(attrs.GetInt("growth_interval"));
    rule_.hysteresis = static_cast<int32_t>(attrs.GetInt("hysteresis"));
    rule_.dynamic = attrs.GetBool("dynamic");
    keeps_state_on_fault_ = true;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const cuda::LossScaleArrays arrays{
        static_cast<const float*>(args.inputs[0]),   static_cast<const int32_t*>(args.inputs[1]),
        static_cast<const int32_t*>(args.inputs[2]), static_cast<const int64_t*>(args.inputs[3]),
        static_cast<const int64_t*>(args.inputs[4]), static_cast<const int64_t*>(args.inputs[5]),
        static_cast<const bool*>(args.inputs[6]),    static_cast<float*>(args.outputs[0]),
        static_cast<int32_t*>(args.outputs[1]),      static_cast<int32_t*>(args.outputs[2]),
        static_cast<int64_t*>(args.outputs[3]),      static_cast<int64_t*>(args.outputs[4]),
        static_cast<int64_t*>(args.outputs[5])};
    HT_CUDA_RETURN_IF_ERROR(LaunchLossScale(rule_, arrays, args.state->device, stream));
    return absl::OkStatus();
  }

 private:
  cuda::LossScaleRule rule_;
};

}  // namespace

void Register_cuda_loss_scale(KernelRegistry& r) {
  AddCudaKernel<LossScaleKernel>(r, "loss_scale_update", {DType::kF32});
}

}  // namespace halftone::kernels
