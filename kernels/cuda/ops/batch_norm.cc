// batch_norm, batch_norm_inference and batch_norm_grad.
#include "halftone/kernels/cuda/ops/batch_norm.h"

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

// Nothing to cut if there are no channels.
cuda::ChannelCut CutOf(const ir::ValueType& x) {
  const int64_t channels = x.shape[1];
  if (channels == 0) return {};
  const int64_t lines = x.num_elements() / channels;
  int64_t inner = 1;
  if (x.layout == ir::Layout::kPlain) {
    for (int axis = 2; axis < x.shape.rank(); ++axis) inner *= x.shape[axis];
  }
  return cuda::CutChannels(lines, channels, lines == 0 ? 1 : inner, x.dtype);
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

// What the forward kernels share.
class BatchNormForward : public CudaKernel {
 protected:
  explicit BatchNormForward(const ir::Node& node)
      : dtype_(node.input_type(0).dtype),
        cut_(CutOf(node.input_type(0))),
        eps_(node.attrs().GetFloat("eps")) {
    workspace_bytes_ = BatchNormWorkspace(cut_);
  }

  DType dtype_;
  cuda::ChannelCut cut_;
  double eps_;
};

class BatchNormKernel : public BatchNormForward {
 public:
  explicit BatchNormKernel(const ir::Node& node)
      : BatchNormForward(node), momentum_(node.attrs().GetFloat("momentum")) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (cut_.lines == 0) return absl::OkStatus();
    const cuda::BatchNormArrays arrays{
        args.inputs[0],  args.inputs[1],  args.inputs[2],  args.inputs[3],  args.inputs[4],
        args.outputs[0], args.outputs[1], args.outputs[2], args.outputs[3], args.outputs[4]};
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchBatchNorm(dtype_, cut_, eps_, momentum_, arrays, args.workspace, stream));
    return absl::OkStatus();
  }

 private:
  double momentum_;
};

class BatchNormStatsKernel : public BatchNormForward {
 public:
  explicit BatchNormStatsKernel(const ir::Node& node)
      : BatchNormForward(node), momentum_(node.attrs().GetFloat("momentum")) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (cut_.lines == 0) return absl::OkStatus();
    cuda::BatchNormArrays arrays{};
    arrays.x = args.inputs[0];
    arrays.gamma = args.inputs[1];
    arrays.running_mean = args.inputs[2];
    arrays.running_var = args.inputs[3];
    arrays.save_mean = args.outputs[0];
    arrays.save_invstd = args.outputs[1];
    arrays.new_mean = args.outputs[2];
    arrays.new_var = args.outputs[3];
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchBatchNormStats(dtype_, cut_, eps_, momentum_, arrays,
                                                       args.outputs[4], args.outputs[5],
                                                       args.workspace, stream));
    return absl::OkStatus();
  }

 private:
  double momentum_;
};

// Whether the numbers are those of channels, as a split batch norm has them.
absl::Status NumbersAreOfChannels(const ir::Node& node) {
  const ir::ValueType& x = node.input_type(0);
  const Shape& numbers = node.input_type(1).shape;
  if (x.shape.rank() < 2 || numbers.rank() != x.shape.rank() || numbers[1] != x.shape[1] ||
      numbers.num_elements() != x.shape[1]) {
    return Unimplemented("numbers of another shape than [1,C,1,1]");
  }
  return LiesAsItsInput(node);
}

class BatchNormApplyKernel : public CudaKernel {
 public:
  explicit BatchNormApplyKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype), cut_(CutOf(node.input_type(0))) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (cut_.lines == 0) return absl::OkStatus();
    const cuda::BatchNormNumbers numbers{args.inputs[1], args.inputs[2], args.inputs[3],
                                         args.inputs[4]};
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchBatchNormApply(dtype_, cut_, args.inputs[0], numbers, args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  cuda::ChannelCut cut_;
};

class BatchNormInferenceKernel : public BatchNormForward {
 public:
  explicit BatchNormInferenceKernel(const ir::Node& node) : BatchNormForward(node) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (cut_.lines == 0) return absl::OkStatus();
    cuda::BatchNormArrays arrays{};
    arrays.x = args.inputs[0];
    arrays.gamma = args.inputs[1];
    arrays.beta = args.inputs[2];
    arrays.running_mean = args.inputs[3];
    arrays.running_var = args.inputs[4];
    arrays.y = args.outputs[0];
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchBatchNormInference(dtype_, cut_, eps_, arrays, args.workspace, stream));
    return absl::OkStatus();
  }
};

class BatchNormGradKernel : public CudaKernel {
 public:
  explicit BatchNormGradKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype), cut_(CutOf(node.input_type(0))) {
    workspace_bytes_ = BatchNormWorkspace(cut_);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (cut_.channels == 0) return absl::OkStatus();
    const cuda::BatchNormGradArrays arrays{args.inputs[0],  args.inputs[1], args.inputs[2],
                                           args.inputs[3],  args.inputs[4], args.outputs[0],
                                           args.outputs[1], args.outputs[2]};
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchBatchNormGrad(dtype_, cut_, arrays, args.workspace, stream));
    return absl::OkStatus();
  }

 private:
  DType dtype_;
  cuda::ChannelCut cut_;
};

}  // namespace

void Register_cuda_batch_norm(KernelRegistry& r) {
  AddCudaKernel<BatchNormKernel>(r, "batch_norm", ir::kFloats, LiesAsItsInput);
  AddCudaKernel<BatchNormStatsKernel>(r, "batch_norm_stats", ir::kFloats);
  AddCudaKernel<BatchNormApplyKernel>(r, "batch_norm_apply", ir::kFloats, NumbersAreOfChannels);
  AddCudaKernel<BatchNormInferenceKernel>(r, "batch_norm_inference", ir::kFloats, LiesAsItsInput);
  AddCudaKernel<BatchNormGradKernel>(r, "batch_norm_grad", ir::kFloats, LiesAsItsInput);
}

}  // namespace halftone::kernels
