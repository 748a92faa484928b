#include "halftone/kernels/cuda/ops/cast.h"

#include "halftone/kernels/cuda/device/map_plan.h"
#include "halftone/kernels/cuda/ops/elementwise.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

bool IsNarrowFloat(DType dtype) { return dtype == DType::kF32 || IsLow(dtype); }

// f32 holds every value of the source, and the target is rounded from it once.
bool CarriedByF32(DType from, DType to) {
  const bool exact = IsNarrowFloat(from) || from == DType::kU8 || from == DType::kBool;
  return exact && (IsNarrowFloat(to) || to == DType::kBool);
}

class CastKernel : public CudaKernel {
 public:
  explicit CastKernel(const ir::Node& node)
      : from_(node.input_type(0).dtype),
        to_(node.output_type().dtype),
        bytes_(static_cast<size_t>(node.output_type().num_bytes())),
        params_(cuda::PlanMap<1>(node, {0})) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const void* x = args.inputs[0];
    void* y = args.outputs[0];
    if (params_.size == 0) return absl::OkStatus();
    if (from_ == to_) {
      if (x == y) return absl::OkStatus();
      HT_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(y, x, bytes_, cudaMemcpyDeviceToDevice, stream));
    } else if (CarriedByF32(from_, to_)) {
      HT_CUDA_RETURN_IF_ERROR(
          LaunchF32(cuda::Formula::kIdentity, cuda::WithArrays<1>(params_, args, {0}), stream));
    } else {
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchCast(from_, to_, params_.size, x, y, stream));
    }
    return absl::OkStatus();
  }

 private:
  DType from_, to_;
  size_t bytes_;
  cuda::MapParams<1> params_;
};

}  // namespace

void Register_cuda_cast(KernelRegistry& r) {
  AddCudaKernel<CastKernel>(r, "cast", ir::kStorable, LayoutOfInput);
}

}  // namespace halftone::kernels
