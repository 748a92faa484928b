// cumsum and prod.
#include "halftone/kernels/cuda/ops/scan.h"

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class ScanKernel : public CudaKernel {
 public:
  explicit ScanKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype),
        is_sum_(node.op().name == "cumsum"),
        is_empty_(node.output_type().num_elements() == 0) {
    const AxisSplit split(node.input_type(0).shape, node.attrs().GetInt("axis"));
    params_.outer = split.outer;
    params_.size = split.size;
    if (!is_empty_) params_.inner = cuda::WideDivisorOf(split.inner);
    params_.reverse = is_sum_ && node.attrs().GetBool("reverse");
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (is_empty_) return absl::OkStatus();
    cuda::ScanParams params = params_;
    params.x = args.inputs[0];
    params.y = args.outputs[0];
    HT_CUDA_RETURN_IF_ERROR(is_sum_ ? LaunchCumsum(params, dtype_, stream)
                                    : LaunchProd(params, dtype_, stream));
    return absl::OkStatus();
  }

 private:
  cuda::ScanParams params_;
  DType dtype_;
  bool is_sum_, is_empty_;
};

}  // namespace

void Register_cuda_scan(KernelRegistry& r) {
  AddCudaKernel<ScanKernel>(r, "cumsum", ir::kNumeric, PlainInputs);
  AddCudaKernel<ScanKernel>(r, "prod", ir::kNumeric, PlainInputs);
}

}  // namespace halftone::kernels
