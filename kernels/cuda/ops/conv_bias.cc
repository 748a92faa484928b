// conv2d_grad_bias.
#include "halftone/kernels/cuda/ops/conv_bias.h"

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

class ConvBiasKernel : public CudaKernel {
 public:
  explicit ConvBiasKernel(const ir::Node& node)
      : dy_(node.input_type(0).dtype), db_(node.output_type().dtype) {
    const ir::ValueType& dy = node.input_type(0);
    shape_ = {dy.shape.dim(0), dy.shape.dim(1), dy.shape.dim(2) * dy.shape.dim(3),
              dy.layout == ir::Layout::kChannelsLast};
    workspace_bytes_ = cuda::ConvBiasWorkspace(shape_, dy_);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_CUDA_RETURN_IF_ERROR(
        LaunchConvBias(shape_, dy_, db_, args.inputs[0], args.workspace, args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  DType dy_, db_;
  cuda::ConvBiasShape shape_;
};

}  // namespace

void Register_cuda_conv_bias(KernelRegistry& r) {
  AddCudaKernel<ConvBiasKernel>(r, "conv2d_grad_bias", ir::kFloats);
}

}  // namespace halftone::kernels
