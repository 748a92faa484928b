// matmul and linear through cuBLASLt.
#include "halftone/kernels/cuda/cublaslt/plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

using cuda::CublasLtPlan;
using cuda::MatmulGeometry;

class CublasLtKernel : public CudaKernel {
 public:
  CublasLtKernel(const MatmulGeometry& geometry, CublasLtPlan plan)
      : plan_(std::move(plan)), has_bias_(geometry.has_bias) {
    workspace_bytes_ = plan_.workspace_bytes();
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    return plan_.Run(args.inputs[0], args.inputs[1], has_bias_ ? args.inputs[2] : nullptr,
                     args.outputs[0], args.workspace, stream);
  }

 private:
  CublasLtPlan plan_;
  bool has_bias_;
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
