// matmul, linear and f8_matmul through cuBLASLt.
#include <optional>

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/cublaslt/plan.h"
#include "halftone/kernels/cuda/runtime/copy_plan.h"
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
    return plan_.Run(
        {.a = args.inputs[0], .b = args.inputs[1], .bias = has_bias_ ? args.inputs[2] : nullptr},
        args.outputs[0], args.workspace, stream);
  }

 private:
  CublasLtPlan plan_;
  bool has_bias_;
};

// The library takes 8-bit operands that both lie along k; others are transposed into the workspace.
class CublasLtF8Kernel : public CudaKernel {
 public:
  // `stored`: as the operands are; the plan is for them along k.
  CublasLtF8Kernel(const MatmulGeometry& stored, CublasLtPlan plan)
      : plan_(std::move(plan)), has_bias_(stored.has_bias) {
    a_at_ = AlignUp(plan_.workspace_bytes(), kBufferAlignment);
    b_at_ = a_at_;
    if (stored.transpose_a) {
      a_along_k_.emplace(1, Transposed(stored.m, stored.k));
      b_at_ += AlignUp(static_cast<size_t>(stored.m * stored.k), kBufferAlignment);
    }
    workspace_bytes_ = b_at_;
    if (!stored.transpose_b) {
      b_along_k_.emplace(1, Transposed(stored.n, stored.k));
      workspace_bytes_ += static_cast<size_t>(stored.n * stored.k);
    }
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    char* const room = static_cast<char*>(args.workspace);
    CublasLtPlan::Operands operands{.a = args.inputs[0],
                                    .b = args.inputs[1],
                                    .bias = has_bias_ ? args.inputs[4] : nullptr,
                                    .a_factor = args.inputs[2],
                                    .b_factor = args.inputs[3]};
    if (a_along_k_.has_value()) {
      HT_RETURN_IF_ERROR(a_along_k_->Launch(operands.a, room + a_at_, stream));
      operands.a = room + a_at_;
    }
    if (b_along_k_.has_value()) {
      HT_RETURN_IF_ERROR(b_along_k_->Launch(operands.b, room + b_at_, stream));
      operands.b = room + b_at_;
    }
    return plan_.Run(operands, args.outputs[0], room, stream);
  }

 private:
  // From [k, rows] to [rows, k].
  static cuda::CopyView Transposed(int64_t rows, int64_t k) {
    return {.extents = {rows, k}, .from_strides = {1, rows}, .to_strides = {k, 1}};
  }

  CublasLtPlan plan_;
  bool has_bias_;
  std::optional<cuda::StridedCopy> a_along_k_, b_along_k_;
  size_t a_at_ = 0, b_at_ = 0;
};

MatmulGeometry AlongK(MatmulGeometry geometry) {
  geometry.transpose_a = false;
  geometry.transpose_b = true;
  return geometry;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateF8(const ir::Node& node) {
  const MatmulGeometry stored = cuda::GeometryOf(node);
  absl::StatusOr<CublasLtPlan> plan = CublasLtPlan::Make(AlongK(stored));
  if (!plan.ok()) return Annotate(plan.status(), node.Label() + ": ");
  return std::make_unique<CublasLtF8Kernel>(stored, *std::move(plan));
}

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
  AddCudaCandidate(
      r, "cublaslt", "f8_matmul", {DType::kF8E4M3, DType::kF8E5M2},
      [](const ir::Node& node) { return CublasLtPlan::Supports(AlongK(cuda::GeometryOf(node))); },
      CreateF8);
}

}  // namespace halftone::kernels
