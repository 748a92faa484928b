#include "halftone/kernels/cuda/ops/select.h"

#include "halftone/kernels/cuda/device/map_plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

class SelectKernel : public CudaKernel {
 public:
  explicit SelectKernel(const ir::Node& node) {
    const ir::ValueType& y = node.output_type();
    const std::vector<cuda::StridedAxis> axes =
        cuda::BroadcastAxes(y, {node.input_type(0), node.input_type(1), node.input_type(2)});
    params_.size = y.num_elements();
    params_.element_size = static_cast<int>(SizeOf(y.dtype));
    params_.index = cuda::MakeIndex<3>(axes, /*first=*/1);
    params_.width = cuda::AccessWidth(axes, /*operands=*/3, SizeOf(y.dtype));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.size == 0) return absl::OkStatus();
    cuda::SelectParams params = params_;
    params.condition = static_cast<const uint8_t*>(args.inputs[0]);
    params.a = args.inputs[1];
    params.b = args.inputs[2];
    params.y = args.outputs[0];
    if (!cuda::Aligned16({params.condition, params.a, params.b, params.y})) params.width = 1;
    HT_CUDA_RETURN_IF_ERROR(LaunchSelect(params, stream));
    return absl::OkStatus();
  }

 private:
  cuda::SelectParams params_;
};

}  // namespace

void Register_cuda_select(KernelRegistry& r) {
  AddCudaKernel<SelectKernel>(r, "where", ir::kAnyDType);
}

}  // namespace halftone::kernels
