// grad_stats.
#include "halftone/kernels/cuda/ops/grad_stats.h"

#include <vector>

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

// Ports: inv_scale, then the gradients.
class GradStatsKernel : public CudaKernel {
 public:
  explicit GradStatsKernel(const ir::Node& node) {
    for (int i = 1; i < node.num_inputs(); ++i) {
      const ir::ValueType& type = node.input_type(i);
      grads_.push_back({type.num_elements(), type.dtype});
      chunks_ += (type.num_elements() + cuda::GradBatch::kChunk - 1) / cuda::GradBatch::kChunk;
    }
    workspace_bytes_ = static_cast<size_t>(chunks_) * sizeof(cuda::GradPartial);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    auto* const partials = static_cast<cuda::GradPartial*>(args.workspace);
    auto* next_partial = partials;
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
      next_partial += batch.table.chunks();
    }
    HT_CUDA_RETURN_IF_ERROR(LaunchGradTotal(partials, chunks_, static_cast<bool*>(args.outputs[0]),
                                            static_cast<float*>(args.outputs[1]),
                                            static_cast<int32_t*>(args.outputs[2]), stream));
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

}  // namespace

void Register_cuda_grad_stats(KernelRegistry& r) {
  // The first float input is inv_scale; gradients may be of any float dtype.
  AddCudaKernel<GradStatsKernel>(r, "grad_stats", {DType::kF32});
}

}  // namespace halftone::kernels
