#include "halftone/kernels/cuda/ops/dropout.h"

#include <cmath>

#include "halftone/kernels/cuda/device/strided_plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class DropoutKernel : public CudaKernel {
 public:
  explicit DropoutKernel(const ir::Node& node) {
    const ir::ValueType& y = node.output_type();
    const double p = node.attrs().GetFloat("p");
    const double scale = 1 / (1 - p);
    params_.seed = static_cast<uint64_t>(node.attrs().GetInt("seed"));
    // u * 2^-24 >= p for whole u.
    params_.threshold = static_cast<int32_t>(std::ceil(p * 0x1p24));
    params_.dtype = y.dtype;
    params_.scale = y.dtype == DType::kF64 ? scale : static_cast<double>(static_cast<float>(scale));
    params_.size = y.num_elements();
    if (y.layout == ir::Layout::kChannelsLast) {
      params_.channels_last = true;
      const int64_t plane = y.shape[2] * y.shape[3];
      params_.piece = plane % 4 == 0 ? 4 : 1;
      if (params_.size > 0) {
        params_.channels = cuda::WideDivisorOf(y.shape[1]);
        params_.pieces = cuda::WideDivisorOf(plane / params_.piece);
      }
    }
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.size == 0) return absl::OkStatus();
    const bool wide = cuda::Aligned16({args.inputs[0], args.outputs[0]});
    HT_CUDA_RETURN_IF_ERROR(
        LaunchDropout(params_, args.inputs[0], args.outputs[0], wide, args.state->device, stream));
    return absl::OkStatus();
  }

 private:
  cuda::DropoutParams params_;
};

}  // namespace

void Register_cuda_dropout(KernelRegistry& r) {
  AddCudaKernel<DropoutKernel>(r, "dropout", ir::kFloats, LayoutOfInput);
}

}  // namespace halftone::kernels
