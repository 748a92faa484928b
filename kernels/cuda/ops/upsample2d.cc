#include "halftone/kernels/cuda/ops/upsample2d.h"

#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/resampled_axis.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class UpsampleKernel : public CudaKernel {
 public:
  explicit UpsampleKernel(const ir::Node& node)
      : dtype_(node.output_type().dtype), is_grad_(node.op().name == "upsample2d_grad") {
    const Shape& image = (is_grad_ ? node.output_type() : node.input_type(0)).shape;
    const Shape& written = node.output_type().shape;
    params_.planes = image[0] * image[1];
    params_.h = ResampledAxisOf(node.attrs(), image, 0);
    params_.w = ResampledAxisOf(node.attrs(), image, 1);
    params_.h_step = params_.h.step();
    params_.w_step = params_.w.step();
    params_.by_rows = cuda::WideDivisorOf(written[2]);
    params_.by_columns = cuda::WideDivisorOf(written[3]);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.planes == 0) return absl::OkStatus();
    const auto launch = is_grad_ ? &cuda::LaunchUpsampleGrad : &cuda::LaunchUpsample;
    HT_CUDA_RETURN_IF_ERROR(launch(params_, dtype_, args.inputs[0], args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  cuda::UpsampleParams params_;
  DType dtype_;
  bool is_grad_;
};

}  // namespace

void Register_cuda_upsample2d(KernelRegistry& r) {
  AddCudaKernel<UpsampleKernel>(r, "upsample2d", ir::kFloats, PlainInputs);
  AddCudaKernel<UpsampleKernel>(r, "upsample2d_grad", ir::kFloats, PlainInputs);
}

}  // namespace halftone::kernels
