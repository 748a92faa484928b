// argmax.
#include "halftone/kernels/cuda/ops/argmax.h"

#include <algorithm>

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class ArgmaxKernel : public CudaKernel {
 public:
  explicit ArgmaxKernel(const ir::Node& node)
      : split_(node.input_type(0).shape, node.attrs().GetInt("axis")),
        dtype_(node.input_type(0).dtype) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (split_.lines() == 0) return absl::OkStatus();
    const cuda::ArgmaxParams params{split_.outer, split_.size, cuda::WideDivisorOf(split_.inner),
                                    args.inputs[0], static_cast<int64_t*>(args.outputs[0])};
    HT_CUDA_RETURN_IF_ERROR(LaunchArgmax(params, dtype_, stream));
    return absl::OkStatus();
  }

 private:
  AxisSplit split_;
  DType dtype_;
};

}  // namespace

void Register_cuda_argmax(KernelRegistry& r) {
  AddCudaKernel<ArgmaxKernel>(r, "argmax", ir::kNumeric, PlainInputs);
}

}  // namespace halftone::kernels
