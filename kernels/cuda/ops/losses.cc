// cross_entropy, cross_entropy_grad, mse_loss and l1_loss.
#include "halftone/kernels/cuda/ops/losses.h"

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cuda/device/index_check.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

cuda::LossReduction ReductionOf(const ir::Node& node) {
  const std::string& name = node.attrs().GetString("reduction");
  return name == "none"  ? cuda::LossReduction::kNone
         : name == "sum" ? cuda::LossReduction::kSum
                         : cuda::LossReduction::kMean;
}

cuda::CrossEntropyShape ShapeOf(const ir::Node& node) {
  const ir::ValueType& logits = node.input_type(0);
  const AxisSplit split(logits.shape, node.attrs().GetInt("axis"));
  cuda::CrossEntropyShape s;
  s.dtype = logits.dtype;
  s.outer = split.outer;
  s.classes = split.size;
  s.inner = split.inner;
  s.wide_targets = node.input_type(1).dtype == DType::kI64;
  s.smoothing = node.attrs().GetFloat("label_smoothing");
  s.ignore_index = node.attrs().GetInt("ignore_index");
  s.reduction = ReductionOf(node);
  return s;
}

// Workspace: the number of targets that count, then a loss for each line.
constexpr size_t kCountedBytes = 16;

absl::Status CheckTargets(const cuda::CrossEntropyShape& s, const KernelArgs& args,
                          cudaStream_t stream) {
  cuda::IndexCheck check;
  check.indices = args.inputs[1];
  check.count = s.lines();
  check.wide = s.wide_targets;
  check.bound = s.classes;
  check.has_ignored = true;
  check.ignored = s.ignore_index;
  check.counted = static_cast<int64_t*>(args.workspace);
  HT_CUDA_RETURN_IF_ERROR(cuda::LaunchIndexCheck(check, args.fault_id, args.state->device, stream));
  return absl::OkStatus();
}

class CrossEntropyKernel : public CudaKernel {
 public:
  explicit CrossEntropyKernel(const ir::Node& node) : shape_(ShapeOf(node)) {
    const bool each = shape_.reduction == cuda::LossReduction::kNone;
    workspace_bytes_ =
        kCountedBytes +
        (each ? 0 : static_cast<size_t>(cuda::LossSumRoom(shape_.lines())) * sizeof(double));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckTargets(shape_, args, stream));
    const cuda::CrossEntropyArrays arrays{
        args.inputs[0],
        args.inputs[1],
        static_cast<const int64_t*>(args.workspace),
        args.outputs[0],
        args.outputs[1],
        reinterpret_cast<double*>(static_cast<char*>(args.workspace) + kCountedBytes)};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchCrossEntropy(shape_, arrays, stream));
    return absl::OkStatus();
  }

 private:
  cuda::CrossEntropyShape shape_;
};

class CrossEntropyGradKernel : public CudaKernel {
 public:
  explicit CrossEntropyGradKernel(const ir::Node& node) : shape_(ShapeOf(node)) {
    workspace_bytes_ = kCountedBytes;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckTargets(shape_, args, stream));
    const cuda::CrossEntropyGradArrays arrays{args.inputs[0],
                                              args.inputs[1],
                                              args.inputs[2],
                                              args.inputs[3],
                                              static_cast<const int64_t*>(args.workspace),
                                              args.outputs[0]};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchCrossEntropyGrad(shape_, arrays, stream));
    return absl::OkStatus();
  }

 private:
  cuda::CrossEntropyShape shape_;
};

class RegressionLossKernel : public CudaKernel {
 public:
  explicit RegressionLossKernel(const ir::Node& node) {
    loss_.dtype = node.input_type(0).dtype;
    loss_.squared = node.op().name == "mse_loss";
    loss_.reduction = ReductionOf(node);
    loss_.count = node.input_type(0).num_elements();
    if (loss_.reduction != cuda::LossReduction::kNone) {
      workspace_bytes_ =
          static_cast<size_t>(cuda::RegressionPartials(loss_.count)) * sizeof(double);
    }
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchRegressionLoss(loss_, args.inputs[0], args.inputs[1], args.outputs[0],
                                   static_cast<double*>(args.workspace), stream));
    return absl::OkStatus();
  }

 private:
  cuda::RegressionLoss loss_;
};

}  // namespace

void Register_cuda_losses(KernelRegistry& r) {
  AddCudaKernel<CrossEntropyKernel>(r, "cross_entropy", ir::kFloats, PlainInputs);
  AddCudaKernel<CrossEntropyGradKernel>(r, "cross_entropy_grad", ir::kFloats, PlainInputs);
  AddCudaKernel<RegressionLossKernel>(r, "mse_loss", ir::kFloats, PlainInputs);
  AddCudaKernel<RegressionLossKernel>(r, "l1_loss", ir::kFloats, PlainInputs);
}

}  // namespace halftone::kernels
