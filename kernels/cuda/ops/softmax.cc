// softmax, log_softmax, softmax_grad and log_softmax_grad.
#include "halftone/kernels/cuda/ops/softmax.h"

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class SoftmaxKernel : public CudaKernel {
 public:
  explicit SoftmaxKernel(const ir::Node& node)
      : dtype_(node.output_type().dtype), is_grad_(node.num_inputs() == 2) {
    const AxisSplit split(node.output_type().shape, node.attrs().GetInt("axis"));
    shape_ = {split.outer, split.size, split.inner, node.op().name.rfind("log_", 0) == 0};
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (shape_.outer * shape_.classes * shape_.inner == 0) return absl::OkStatus();
    if (is_grad_) {
      HT_CUDA_RETURN_IF_ERROR(LaunchSoftmaxGrad(shape_, dtype_, args.inputs[0], args.inputs[1],
                                                args.outputs[0], stream));
    } else {
      HT_CUDA_RETURN_IF_ERROR(
          LaunchSoftmax(shape_, dtype_, args.inputs[0], args.outputs[0], stream));
    }
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  bool is_grad_;
  cuda::SoftmaxShape shape_;
};

}  // namespace

void Register_cuda_softmax(KernelRegistry& r) {
  for (const char* op : {"softmax", "log_softmax", "softmax_grad", "log_softmax_grad"}) {
    AddCudaKernel<SoftmaxKernel>(r, op, ir::kFloats, PlainInputs);
  }
}

}  // namespace halftone::kernels
