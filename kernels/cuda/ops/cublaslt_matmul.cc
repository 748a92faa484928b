// matmul and linear through cuBLASLt.
#include <optional>

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/cublaslt/plan.h"
#include "halftone/kernels/cuda/device/library_operands.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

using cuda::CublasLtPlan;
using cuda::MatmulGeometry;

class CublasLtKernel : public CudaKernel {
 public:
  CublasLtKernel(const MatmulGeometry& geometry, CublasLtPlan plan)
      : plan_(std::move(plan)), has_bias_(geometry.has_bias) {
    // The library's bias has the output's dtype, that of an f32 bias beside 16-bit operands is kept
    // for the optimizer.
    if (has_bias_ && geometry.bias_dtype != geometry.output_dtype) {
      bias_to_ = geometry.output_dtype;
      bias_count_ = geometry.n;
      // The plan's workspace begins behind it.
      bias_bytes_ = AlignUp(static_cast<size_t>(geometry.n) * SizeOf(geometry.output_dtype),
                            CublasLtPlan::kAlignment);
    }
    workspace_bytes_ = bias_bytes_ + plan_.workspace_bytes();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const void* bias = has_bias_ ? args.inputs[2] : nullptr;
    char* const workspace = static_cast<char*>(args.workspace);
    if (bias_to_) {
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchRoundBias(static_cast<const float*>(bias), bias_count_,
                                                    *bias_to_, workspace, stream));
      bias = workspace;
    }
    return plan_.Run(args.inputs[0], args.inputs[1], bias, args.outputs[0],
                     workspace_bytes_ == 0 ? nullptr : workspace + bias_bytes_, stream);
  }

 private:
  CublasLtPlan plan_;
  bool has_bias_;
  std::optional<DType> bias_to_;
  int64_t bias_count_ = 0;
  size_t bias_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const ir::Node& node) {
  const MatmulGeometry geometry = cuda::GeometryOf(node);
  absl::StatusOr<CublasLtPlan> plan = CublasLtPlan::Make(geometry);
  if (!plan.ok()) return Annotate(plan.status(), node.Label() + ": ");
  return std::make_unique<CublasLtKernel>(geometry, *std::move(plan));
}

absl::Status Supports(const ir::Node& node) {
  return CublasLtPlan::Supports(cuda::GeometryOf(node));
}

}  // namespace

void Register_cuda_cublaslt_matmul(KernelRegistry& r) {
  for (const char* op : {"matmul", "linear"}) {
    AddCudaCandidate(r, "cublaslt", op, ir::kFloats, Supports, Create);
  }
}

}  // namespace halftone::kernels
