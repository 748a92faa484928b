// f8_quantise, f8_scale_update, and f8_matmul by our own product: operands widened to bf16, which
// holds every 8-bit number. For shapes and devices that the library has no 8-bit product for.
#include "halftone/kernels/cuda/ops/f8.h"

#include <cmath>

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/device/matmul_geometry.h"
#include "halftone/kernels/cuda/ops/cast.h"
#include "halftone/kernels/cuda/ops/matmul.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class F8QuantiseKernel : public CudaKernel {
 public:
  explicit F8QuantiseKernel(const ir::Node& node)
      : from_(node.input_type(0).dtype),
        to_(node.output_type().dtype),
        size_(node.input_type(0).num_elements()) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(args.outputs[2], 0, sizeof(float), stream));
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchF8Quantise(
        from_, to_, size_, args.inputs[0], static_cast<const float*>(args.inputs[1]),
        args.outputs[0], static_cast<float*>(args.outputs[1]),
        static_cast<unsigned*>(args.outputs[2]), stream));
    return absl::OkStatus();
  }

 private:
  DType from_, to_;
  int64_t size_;
};

class F8ScaleUpdateKernel : public CudaKernel {
 public:
  explicit F8ScaleUpdateKernel(const ir::Node& node) {
    rule_.largest = std::ldexp(MaxFinite(node.attrs().GetDType("to")),
                               -static_cast<int>(node.attrs().GetInt("margin")));
    rule_.length = static_cast<int32_t>(node.input_type(0).num_elements());
    keeps_state_on_fault_ = true;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchF8ScaleUpdate(
        rule_, static_cast<const float*>(args.inputs[0]), static_cast<const float*>(args.inputs[1]),
        static_cast<const float*>(args.inputs[2]), static_cast<float*>(args.outputs[0]),
        static_cast<float*>(args.outputs[1]), args.state->device, stream));
    return absl::OkStatus();
  }

 private:
  cuda::F8ScaleRule rule_;
};

class F8MatmulKernel : public CudaKernel {
 public:
  explicit F8MatmulKernel(const ir::Node& node) {
    const cuda::MatmulGeometry g = cuda::GeometryOf(node);
    params_.m = g.m;
    params_.n = g.n;
    params_.k = g.k;
    params_.a_row_stride = g.transpose_a ? 1 : g.k;
    params_.a_column_stride = g.transpose_a ? g.m : 1;
    params_.b_row_stride = g.transpose_b ? 1 : g.n;
    params_.b_column_stride = g.transpose_b ? g.k : 1;
    params_.batch_count = 1;
    a_dtype_ = g.operand_dtype;
    b_dtype_ = g.b_dtype;
    finish_.size = g.m * g.n;
    finish_.columns = g.n;
    finish_.to = g.output_dtype;
    has_bias_ = g.has_bias;
    finish_.bias_dtype = g.bias_dtype;
    b_at_ = AlignUp(static_cast<size_t>(g.m * g.k) * sizeof(uint16_t), kBufferAlignment);
    product_at_ =
        b_at_ + AlignUp(static_cast<size_t>(g.k * g.n) * sizeof(uint16_t), kBufferAlignment);
    workspace_bytes_ = product_at_ + static_cast<size_t>(finish_.size) * sizeof(float);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    char* const room = static_cast<char*>(args.workspace);
    cuda::MatmulParams params = params_;
    params.a = room;
    params.b = room + b_at_;
    params.y = room + product_at_;
    if (params.m * params.k > 0) {
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchCast(a_dtype_, DType::kBF16, params.m * params.k,
                                               args.inputs[0], room, stream));
    }
    if (params.k * params.n > 0) {
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchCast(b_dtype_, DType::kBF16, params.k * params.n,
                                               args.inputs[1], room + b_at_, stream));
    }
    HT_CUDA_RETURN_IF_ERROR(
        LaunchMatmul(params, cuda::MatmulDType::kBF16, cuda::MatmulDType::kF32, stream));
    cuda::F8FinishParams finish = finish_;
    finish.product = static_cast<const float*>(params.y);
    finish.a_inverse = static_cast<const float*>(args.inputs[2]);
    finish.b_inverse = static_cast<const float*>(args.inputs[3]);
    finish.bias = has_bias_ ? args.inputs[4] : nullptr;
    finish.y = args.outputs[0];
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchF8Finish(finish, stream));
    return absl::OkStatus();
  }

 private:
  cuda::MatmulParams params_{};
  cuda::F8FinishParams finish_{};
  DType a_dtype_, b_dtype_;
  bool has_bias_;
  size_t b_at_ = 0, product_at_ = 0;
};

}  // namespace

void Register_cuda_f8(KernelRegistry& r) {
  AddCudaKernel<F8QuantiseKernel>(r, "f8_quantise", {DType::kF32, DType::kF16, DType::kBF16},
                                  PlainThroughout);
  AddCudaKernel<F8ScaleUpdateKernel>(r, "f8_scale_update", {DType::kF32});
  AddCudaKernel<F8MatmulKernel>(r, "f8_matmul", {DType::kF8E4M3, DType::kF8E5M2}, PlainThroughout);
}

}  // namespace halftone::kernels
