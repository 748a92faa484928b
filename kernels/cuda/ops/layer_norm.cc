// layer_norm and layer_norm_grad.
#include "halftone/kernels/cuda/ops/layer_norm.h"

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

class LayerNormKernel : public CudaKernel {
 public:
  explicit LayerNormKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype),
        size_(node.input_type(1).num_elements()),
        rows_(node.output_type(1).num_elements()),
        eps_(node.attrs().GetFloat("eps")) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (rows_ == 0) return absl::OkStatus();
    const cuda::LayerNormArrays arrays{args.inputs[0],  args.inputs[1],  args.inputs[2],
                                       args.outputs[0], args.outputs[1], args.outputs[2]};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchLayerNorm(dtype_, rows_, size_, eps_, arrays, stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  int64_t size_, rows_;
  double eps_;
};

class LayerNormGradKernel : public CudaKernel {
 public:
  explicit LayerNormGradKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype), size_(node.input_type(2).num_elements()) {
    const int64_t rows = size_ == 0 ? 0 : node.input_type(0).num_elements() / size_;
    chunks_ = cuda::ColumnChunks(rows, size_);
    workspace_bytes_ = chunks_.partial_bytes();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const cuda::LayerNormGradArrays arrays{args.inputs[0],  args.inputs[1], args.inputs[2],
                                           args.inputs[3],  args.inputs[4], args.outputs[0],
                                           args.outputs[1], args.outputs[2]};
    if (size_ == 0) return absl::OkStatus();
    if (chunks_.rows > 0) {
      HT_CUDA_RETURN_IF_ERROR(
          cuda::LaunchLayerNormGradInput(dtype_, chunks_.rows, size_, arrays, stream));
    }
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchLayerNormGradAffine(
        dtype_, chunks_, arrays, static_cast<cuda::PairOfSums*>(args.workspace), stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  int64_t size_;
  cuda::ColumnChunks chunks_;
};

}  // namespace

void Register_cuda_layer_norm(KernelRegistry& r) {
  AddCudaKernel<LayerNormKernel>(r, "layer_norm", ir::kFloats);
  AddCudaKernel<LayerNormGradKernel>(r, "layer_norm_grad", ir::kFloats);
}

}  // namespace halftone::kernels
