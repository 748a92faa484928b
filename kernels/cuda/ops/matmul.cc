// matmul and linear by our own kernel: every shape and dtype.
#include "halftone/kernels/cuda/ops/matmul.h"

#include "halftone/kernels/cuda/device/matmul_geometry.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

// Rank 8 leaves 6 batch axes.
static_assert(cuda::kMaxMatmulBatchAxes == kMaxRank - 2);

class MatmulKernel : public CudaKernel {
 public:
  explicit MatmulKernel(const ir::Node& node) {
    const cuda::MatmulGeometry g = cuda::GeometryOf(node);
    operands_ = cuda::MatmulDTypeOf(g.operand_dtype);
    output_ = cuda::MatmulDTypeOf(g.output_dtype);
    params_.m = g.m;
    params_.n = g.n;
    params_.k = g.k;
    params_.a_row_stride = g.transpose_a ? 1 : g.k;
    params_.a_column_stride = g.transpose_a ? g.m : 1;
    params_.b_row_stride = g.transpose_b ? 1 : g.n;
    params_.b_column_stride = g.transpose_b ? g.k : 1;
    params_.batch_count = g.batch_count();
    for (const auto& axis : g.batch) {
      params_.batch[params_.batch_axes++] = {axis.extent, axis.a_stride, axis.b_stride};
    }
    has_bias_ = g.has_bias;
    params_.bias_is_f32 = g.bias_dtype == DType::kF32;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    cuda::MatmulParams params = params_;
    params.a = args.inputs[0];
    params.b = args.inputs[1];
    params.bias = has_bias_ ? args.inputs[2] : nullptr;
    params.y = args.outputs[0];
    HT_CUDA_RETURN_IF_ERROR(LaunchMatmul(params, operands_, output_, stream));
    return absl::OkStatus();
  }

 private:
  cuda::MatmulDType operands_, output_;
  cuda::MatmulParams params_{};
  bool has_bias_;
};

}  // namespace

void Register_cuda_matmul(KernelRegistry& r) {
  AddCudaKernel<MatmulKernel>(r, "matmul", ir::kFloats);
  AddCudaKernel<MatmulKernel>(r, "linear", ir::kFloats);
}

}  // namespace halftone::kernels
