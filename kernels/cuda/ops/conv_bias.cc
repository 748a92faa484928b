// conv2d_grad_bias and conv3d_grad_bias.
#include "halftone/kernels/cuda/ops/conv_bias.h"

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

class ConvBiasKernel : public CudaKernel {
 public:
  explicit ConvBiasKernel(const ir::Node& node)
      : dy_(node.input_type(0).dtype), db_(node.output_type().dtype) {
    const ir::ValueType& dy = node.input_type(0);
    int64_t plane = 1;
    for (const int64_t extent : dy.shape.dims().subspan(2)) plane *= extent;
    shape_ = {dy.shape.dim(0), dy.shape.dim(1), plane, dy.layout == ir::Layout::kChannelsLast};
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
  for (const int dims : ops::kConvDims) {
    AddCudaKernel<ConvBiasKernel>(r, ops::ConvOp(dims, "_grad_bias"), ir::kFloats);
  }
}

}  // namespace halftone::kernels
