#include "halftone/kernels/cuda/ops/pad.h"

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class PadKernel : public CudaKernel {
 public:
  explicit PadKernel(const ir::Node& node) {
    const Shape &x = node.input_type(0).shape, &y = node.output_type().shape;
    const DType dtype = node.output_type().dtype;
    const std::vector<int64_t>& before = node.attrs().GetInts("before");
    const double value = node.attrs().GetFloat("value");
    params_.mode = ops::PadModeOf(node.attrs().GetString("mode"));
    params_.size = y.num_elements();
    params_.element_size = static_cast<int>(SizeOf(dtype));
    if (IsFloat(dtype)) {
      StoreDouble(&params_.value, dtype, 0, value);
    } else {
      StoreInt(&params_.value, dtype, 0, static_cast<int64_t>(value));
    }
    if (params_.size == 0) return;
    int64_t merged = 1, stride = 1;  // of axes that are not padded
    const auto flush = [&] {
      if (merged == 1) return;
      params_.axis[params_.axes++] = {cuda::WideDivisorOf(merged), 0, merged, stride / merged};
      merged = 1;
    };
    for (int i = y.rank() - 1; i >= 0; --i) {
      if (x[i] == y[i]) {
        merged *= y[i];
        stride *= x[i];
        continue;
      }
      flush();
      params_.axis[params_.axes++] = {cuda::WideDivisorOf(y[i]), before[i], x[i], stride};
      stride *= x[i];
    }
    flush();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.size == 0) return absl::OkStatus();
    HT_CUDA_RETURN_IF_ERROR(LaunchPad(params_, args.inputs[0], args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  cuda::PadParams params_;
};

}  // namespace

void Register_cuda_pad(KernelRegistry& r) {
  AddCudaKernel<PadKernel>(r, "pad", ir::kAnyDType, PlainInputs);
}

}  // namespace halftone::kernels
