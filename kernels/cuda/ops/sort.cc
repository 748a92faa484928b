#include "halftone/kernels/cuda/ops/sort.h"

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class SortKernel : public CudaKernel {
 public:
  explicit SortKernel(const ir::Node& node)
      : dtype_(node.input_type(0).dtype), is_empty_(node.output_type(0).num_elements() == 0) {
    if (is_empty_) return;
    const AxisSplit split(node.input_type(0).shape, node.attrs().GetInt("axis"));
    params_.outer = split.outer;
    params_.size = split.size;
    params_.first = AxisSplit(node.output_type(0).shape, node.attrs().GetInt("axis")).size;
    params_.inner = cuda::WideDivisorOf(split.inner);
    params_.by_size = cuda::WideDivisorOf(params_.size);
    params_.by_first = cuda::WideDivisorOf(params_.first);
    params_.descending = node.attrs().GetBool("descending");
    workspace_bytes_ = SortWorkspace(params_, dtype_);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (is_empty_) return absl::OkStatus();
    cuda::SortParams params = params_;
    params.x = args.inputs[0];
    params.values = args.outputs[0];
    params.places = static_cast<int64_t*>(args.outputs[1]);
    HT_CUDA_RETURN_IF_ERROR(LaunchSort(params, dtype_, args.workspace, stream));
    return absl::OkStatus();
  }

 private:
  cuda::SortParams params_;
  DType dtype_;
  bool is_empty_;
};

absl::Status PlainAndPlaceable(const ir::Node& node) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  const AxisSplit split(node.input_type(0).shape, node.attrs().GetInt("axis"));
  if (split.size >= int64_t{1} << 32) return Unimplemented("places do not fit 32 bits");
  return absl::OkStatus();
}

}  // namespace

void Register_cuda_sort(KernelRegistry& r) {
  AddCudaKernel<SortKernel>(r, "sort", ir::kNumeric, PlainAndPlaceable);
}

}  // namespace halftone::kernels
