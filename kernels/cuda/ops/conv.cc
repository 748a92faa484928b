// conv2d, conv3d and their gradients in input and weight by our own kernels: what cuDNN leaves.
#include "halftone/kernels/cuda/ops/conv.h"

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

using cuda::ConvProduct;

cuda::ConvAxis AxisOf(const ops::WindowAxis& a) {
  return {a.input, a.output, a.kernel, a.stride, a.padding, a.dilation};
}

cuda::ConvStrides ElementStrides(const ir::ValueType& type) {
  const auto s = ir::StridesOf(type);
  if (s.size() == 4) return {s[0], s[1], 0, s[2], s[3]};
  return {s[0], s[1], s[2], s[3], s[4]};
}

class DirectConv : public CudaKernel {
 public:
  DirectConv(const ir::Node& node, ConvProduct product) : product_(product) {
    const ops::ConvGeometry g = ops::ConvGeometryOf(node);
    const ir::ValueType& result = node.output_type();
    operands_ = node.input_type(0).dtype;
    result_ = result.dtype;
    p_.n = g.n;
    p_.c = g.c;
    p_.o = g.o;
    p_.groups = g.groups;
    p_.d = AxisOf(g.d);
    p_.h = AxisOf(g.h);
    p_.w = AxisOf(g.w);
    p_.x_strides = ElementStrides(product == ConvProduct::kGradInput ? result : node.input_type(0));
    p_.y_strides = ElementStrides(product == ConvProduct::kForward     ? result
                                  : product == ConvProduct::kGradInput ? node.input_type(0)
                                                                       : node.input_type(1));
    p_.channels_last = result.layout == ir::Layout::kChannelsLast;
    has_bias_ = product == ConvProduct::kForward && node.num_inputs() > 2;
    p_.bias_is_f32 = has_bias_ && node.input_type(2).dtype == DType::kF32;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    cuda::ConvParams p = p_;
    p.result = args.outputs[0];
    (product_ == ConvProduct::kGradInput ? p.y : p.x) = args.inputs[0];
    (product_ == ConvProduct::kGradWeight ? p.y : p.weight) = args.inputs[1];
    if (has_bias_) p.bias = args.inputs[2];
    HT_CUDA_RETURN_IF_ERROR(LaunchConv(p, product_, operands_, result_, stream));
    return absl::OkStatus();
  }

 private:
  ConvProduct product_;
  DType operands_, result_;
  bool has_bias_;
  cuda::ConvParams p_{};
};

}  // namespace

void Register_cuda_conv(KernelRegistry& r) {
  for (const int dims : ops::kConvDims) {
    for (const auto& [suffix, product] : cuda::kConvProducts) {
      AddCudaCandidate(
          r, "native", ops::ConvOp(dims, suffix), ir::kFloats, nullptr,
          [product = product](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
            return std::unique_ptr<Kernel>(new DirectConv(node, product));
          });
    }
  }
}

}  // namespace halftone::kernels
