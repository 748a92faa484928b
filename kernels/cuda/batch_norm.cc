// batch_norm, batch_norm_inference and batch_norm_grad.
#include "halftone/kernels/cuda/batch_norm.h"

#include "halftone/kernels/cuda/cuda_kernel.h"

namespace halftone::kernels {
namespace {

cuda::ChannelGeometry GeometryOf(const ir::ValueType& x) {
  cuda::ChannelGeometry g;
  g.channels = x.shape[1];
  g.lines = g.channels == 0 ? 0 : x.num_elements() / g.channels;
  if (x.layout == ir::Layout::kPlain) {
    for (int axis = 2; axis < x.shape.rank(); ++axis) g.inner *= x.shape[axis];
  }
  // No elements: whatever divides.
  if (g.inner == 0) g.inner = 1;
  return g;
}

// Data operands and results lie alike.
absl::Status LiesAsItsInput(const ir::Node& node) {
  const ir::Layout layout = node.input_type(0).layout;
  const bool is_grad = node.op().name == "batch_norm_grad";
  if (node.output_type(0).layout != layout || (is_grad && node.input_type(1).layout != layout)) {
    return Unimplemented("layouts differ");
  }
  return absl::OkStatus();
}

class BatchNormKernel : public CudaKernel {
 public:
  explicit BatchNormKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype),
        geometry_(GeometryOf(node.input_type(0))),
        eps_(node.attrs().GetFloat("eps")),
        momentum_(node.attrs().GetFloat("momentum")) {
    workspace_bytes_ = geometry_.chunks().partial_bytes();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (geometry_.lines == 0) return absl::OkStatus();
    const cuda::BatchNormArrays arrays{
        args.inputs[0],  args.inputs[1],  args.inputs[2],  args.inputs[3],  args.inputs[4],
        args.outputs[0], args.outputs[1], args.outputs[2], args.outputs[3], args.outputs[4]};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchBatchNorm(dtype_, geometry_, eps_, momentum_, arrays,
                                                  static_cast<cuda::PairOfSums*>(args.workspace),
                                                  stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  cuda::ChannelGeometry geometry_;
  double eps_, momentum_;
};

class BatchNormInferenceKernel : public CudaKernel {
 public:
  explicit BatchNormInferenceKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype),
        geometry_(GeometryOf(node.input_type(0))),
        eps_(node.attrs().GetFloat("eps")) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (geometry_.lines == 0) return absl::OkStatus();
    cuda::BatchNormArrays arrays{};
    arrays.x = args.inputs[0];
    arrays.gamma = args.inputs[1];
    arrays.beta = args.inputs[2];
    arrays.running_mean = args.inputs[3];
    arrays.running_var = args.inputs[4];
    arrays.y = args.outputs[0];
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchBatchNormInference(dtype_, geometry_, eps_, arrays, stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  cuda::ChannelGeometry geometry_;
  double eps_;
};

class BatchNormGradKernel : public CudaKernel {
 public:
  explicit BatchNormGradKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype), geometry_(GeometryOf(node.input_type(0))) {
    workspace_bytes_ = geometry_.chunks().partial_bytes();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (geometry_.channels == 0) return absl::OkStatus();
    const cuda::BatchNormGradArrays arrays{args.inputs[0],  args.inputs[1], args.inputs[2],
                                           args.inputs[3],  args.inputs[4], args.outputs[0],
                                           args.outputs[1], args.outputs[2]};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchBatchNormGrad(
        dtype_, geometry_, arrays, static_cast<cuda::PairOfSums*>(args.workspace), stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  cuda::ChannelGeometry geometry_;
};

}  // namespace

void Register_cuda_batch_norm(KernelRegistry& r) {
  AddCudaKernel<BatchNormKernel>(r, "batch_norm", ir::kFloats, LiesAsItsInput);
  AddCudaKernel<BatchNormInferenceKernel>(r, "batch_norm_inference", ir::kFloats, LiesAsItsInput);
  AddCudaKernel<BatchNormGradKernel>(r, "batch_norm_grad", ir::kFloats, LiesAsItsInput);
}

}  // namespace halftone::kernels
