// max_pool2d, avg_pool2d and their gradients.
#include "halftone/kernels/cuda/ops/pool.h"

#include <algorithm>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class PoolKernel : public CudaKernel {
 public:
  explicit PoolKernel(const ir::Node& node) : dtype_(node.input_type(0).dtype) {
    const ops::PoolGeometry g = ops::PoolGeometryOf(node);
    const bool channels_last = node.output_type().layout == ir::Layout::kChannelsLast;
    shape_ = {channels_last ? g.n : g.n * g.c, channels_last ? g.c : 1, AxisOf(g.h), AxisOf(g.w)};
  }

 protected:
  DType dtype_;
  cuda::PoolShape shape_;

 private:
  static cuda::PoolAxis AxisOf(const ops::WindowAxis& a) {
    const auto narrow = [](int64_t extent) { return static_cast<int32_t>(extent); };
    return {narrow(a.input),  narrow(a.output),  narrow(a.kernel),
            narrow(a.stride), narrow(a.padding), narrow(a.dilation)};
  }
};

class MaxPoolKernel : public PoolKernel {
 public:
  explicit MaxPoolKernel(const ir::Node& node)
      : PoolKernel(node), wide_index_(node.output_type(1).dtype == DType::kI32) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_CUDA_RETURN_IF_ERROR(LaunchMaxPool(shape_, dtype_, wide_index_, args.inputs[0],
                                          args.outputs[0], args.outputs[1], stream));
    return absl::OkStatus();
  }

 private:
  bool wide_index_;
};

class MaxPoolGradKernel : public PoolKernel {
 public:
  explicit MaxPoolGradKernel(const ir::Node& node)
      : PoolKernel(node), wide_index_(node.input_type(1).dtype == DType::kI32) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_CUDA_RETURN_IF_ERROR(LaunchMaxPoolGrad(shape_, dtype_, wide_index_, args.inputs[0],
                                              args.inputs[1], args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  bool wide_index_;
};

template <auto kLaunch>
class AvgPoolKernel : public PoolKernel {
 public:
  explicit AvgPoolKernel(const ir::Node& node)
      : PoolKernel(node), count_include_pad_(node.attrs().GetBool("count_include_pad")) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    return cuda::ToStatus(
        kLaunch(shape_, dtype_, count_include_pad_, args.inputs[0], args.outputs[0], stream),
        "average pooling");
  }

 private:
  bool count_include_pad_;
};

absl::Status OneLayoutAndSmallPlanes(const ir::Node& node) {
  HT_RETURN_IF_ERROR(OneLayout(node));
  const ops::PoolGeometry g = ops::PoolGeometryOf(node);
  const int64_t channels = node.output_type().layout == ir::Layout::kChannelsLast ? g.c : 1;
  const int64_t plane = channels * std::max(g.h.input * g.w.input, g.h.output * g.w.output);
  if (plane > cuda::kMaxPoolPlane) {
    return Unimplemented("more than ", cuda::kMaxPoolPlane, " elements of an image");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cuda_pool(KernelRegistry& r) {
  AddCudaKernel<MaxPoolKernel>(r, "max_pool2d", ir::kFloats, OneLayoutAndSmallPlanes);
  AddCudaKernel<MaxPoolGradKernel>(r, "max_pool2d_grad", ir::kFloats, OneLayoutAndSmallPlanes);
  AddCudaKernel<AvgPoolKernel<cuda::LaunchAvgPool>>(r, "avg_pool2d", ir::kFloats,
                                                    OneLayoutAndSmallPlanes);
  AddCudaKernel<AvgPoolKernel<cuda::LaunchAvgPoolGrad>>(r, "avg_pool2d_grad", ir::kFloats,
                                                        OneLayoutAndSmallPlanes);
}

}  // namespace halftone::kernels
