// grad_stats grad_squares grad_stats_of_squares: the first is the second and the third in one, with their bits.
#include "halftone/kernels/cuda/ops/grad_stats.h"

#include <vector>

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

// Ports of the first two: inv_scale, then the gradients.
class SquaresKernel : public CudaKernel {
 protected:
  explicit SquaresKernel(const ir::Node& node) {
    for (int i = 1; i < node.num_inputs(); ++i) {
      const ir::ValueType& type = node.input_type(i);
      grads_.push_back({type.num_elements(), type.dtype});
      chunks_ += (type.num_elements() + cuda::GradBatch::kChunk - 1) / cuda::GradBatch::kChunk;
    }
  }

  int64_t num_gradients() const { return static_cast<int64_t>(grads_.size()); }
  size_t partials_bytes() const { return static_cast<size_t>(chunks_) * sizeof(cuda::GradPartial); }
  // `partials`: as many bytes as that says, at a multiple of 16.
  absl::Status LaunchSquares(const KernelArgs& args, void* partials, double* squares,
                             cudaStream_t stream) const {
    auto* next_partial = static_cast<cuda::GradPartial*>(partials);
    for (size_t next = 0; next < grads_.size();) {
      cuda::GradBatch batch{};
      batch.first_grad = static_cast<int32_t>(next);
      for (; next < grads_.size(); ++next) {
        const int i = batch.table.count;
        if (!batch.table.HasRoom(grads_[next].size, batch.kChunk)) break;
        batch.grad[i] = args.inputs[1 + next];
        batch.size[i] = grads_[next].size;
        batch.dtype[i] = grads_[next].dtype;
        batch.table.Add(grads_[next].size, batch.kChunk);
      }
      HT_CUDA_RETURN_IF_ERROR(
          LaunchGradSums(batch, static_cast<const float*>(args.inputs[0]), next_partial, stream));
      HT_CUDA_RETURN_IF_ERROR(
          LaunchGradSquares(batch, next_partial, num_gradients(), squares, stream));
      next_partial += batch.table.chunks();
    }
    return absl::OkStatus();
  }

 private:
  struct Grad {
    int64_t size;
    DType dtype;
  };
  std::vector<Grad> grads_;
  int64_t chunks_ = 0;
};

absl::Status LaunchStats(const double* squares, int64_t gradients, void* const* outputs,
                         cudaStream_t stream) {
  HT_CUDA_RETURN_IF_ERROR(cuda::LaunchGradTotal(squares, gradients, static_cast<bool*>(outputs[0]),
                                                static_cast<float*>(outputs[1]),
                                                static_cast<int32_t*>(outputs[2]), stream));
  return absl::OkStatus();
}

class GradStatsKernel : public SquaresKernel {
 public:
  explicit GradStatsKernel(const ir::Node& node) : SquaresKernel(node) {
    workspace_bytes_ = partials_bytes() + 2 * sizeof(double) * static_cast<size_t>(num_gradients());
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    auto* const squares =
        reinterpret_cast<double*>(static_cast<char*>(args.workspace) + partials_bytes());
    HT_RETURN_IF_ERROR(LaunchSquares(args, args.workspace, squares, stream));
    return LaunchStats(squares, num_gradients(), args.outputs, stream);
  }
};

class GradSquaresKernel : public SquaresKernel {
 public:
  explicit GradSquaresKernel(const ir::Node& node) : SquaresKernel(node) {
    workspace_bytes_ = partials_bytes();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    return LaunchSquares(args, args.workspace, static_cast<double*>(args.outputs[0]), stream);
  }
};

class GradStatsOfSquaresKernel : public CudaKernel {
 public:
  explicit GradStatsOfSquaresKernel(const ir::Node& node)
      : gradients_(node.input_type(0).shape[1]) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    return LaunchStats(static_cast<const double*>(args.inputs[0]), gradients_, args.outputs,
                       stream);
  }

 private:
  const int64_t gradients_;
};

}  // namespace

void Register_cuda_grad_stats(KernelRegistry& r) {
  // The first float input is inv_scale; gradients may be of any float dtype.
  AddCudaKernel<GradStatsKernel>(r, "grad_stats", {DType::kF32});
  AddCudaKernel<GradSquaresKernel>(r, "grad_squares", {DType::kF32});
  AddCudaKernel<GradStatsOfSquaresKernel>(r, "grad_stats_of_squares", {DType::kF64});
}

}  // namespace halftone::kernels
