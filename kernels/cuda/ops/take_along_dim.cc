// take_along_dim and its gradient.
#include "halftone/kernels/cuda/ops/take_along_dim.h"

#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cuda/device/index_check.h"
#include "halftone/kernels/cuda/ops/scatter.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

// `table` is what the indices of input 1 pick from, or add to.
cuda::TakeShape TakeShapeOf(const ir::Node& node, const Shape& table) {
  const AxisSplit rows(table, node.attrs().GetInt("axis"));
  const AxisSplit picks(node.input_type(1).shape, node.attrs().GetInt("axis"));
  cuda::TakeShape shape;
  shape.outer = rows.outer;
  shape.rows = rows.size;
  shape.picks = picks.size;
  shape.inner = rows.inner;
  shape.wide = node.input_type(1).dtype == DType::kI64;
  if (shape.size() > 0) {
    shape.by_inner = cuda::WideDivisorOf(shape.inner);
    shape.by_block = cuda::WideDivisorOf(shape.picks * shape.inner);
  }
  return shape;
}

absl::Status CheckPicks(const cuda::TakeShape& shape, const KernelArgs& args, cudaStream_t stream) {
  const cuda::IndexCheck check{args.inputs[1], shape.size(), shape.wide, shape.rows};
  HT_CUDA_RETURN_IF_ERROR(LaunchIndexCheck(check, args.fault_id, args.state->device, stream));
  return absl::OkStatus();
}

class TakeKernel : public CudaKernel {
 public:
  explicit TakeKernel(const ir::Node& node)
      : shape_(TakeShapeOf(node, node.input_type(0).shape)),
        element_size_(static_cast<int>(SizeOf(node.output_type().dtype))) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckPicks(shape_, args, stream));
    HT_CUDA_RETURN_IF_ERROR(
        LaunchTake(shape_, element_size_, args.inputs[0], args.inputs[1], args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  cuda::TakeShape shape_;
  int element_size_;
};

// Every element of dx is a row of one element.
cuda::ScatterShape ElementScatter(const cuda::TakeShape& s) {
  return {1, s.outer * s.rows * s.inner, s.size(), 1, -1, true};
}

class TakeGradKernel : public CudaKernel {
 public:
  explicit TakeGradKernel(const ir::Node& node)
      : shape_(TakeShapeOf(node, node.output_type().shape)), dtype_(node.output_type().dtype) {
    flat_bytes_ = (static_cast<size_t>(shape_.size()) * sizeof(int64_t) + 63) / 64 * 64;
    workspace_bytes_ = flat_bytes_ + cuda::ScatterWorkspace(ElementScatter(shape_));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckPicks(shape_, args, stream));
    auto* const flat = static_cast<int64_t*>(args.workspace);
    HT_CUDA_RETURN_IF_ERROR(LaunchFlatRows(shape_, args.inputs[1], flat, stream));
    HT_CUDA_RETURN_IF_ERROR(
        LaunchScatter(ElementScatter(shape_), dtype_, dtype_, args.inputs[0], flat, nullptr,
                      static_cast<char*>(args.workspace) + flat_bytes_, args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  cuda::TakeShape shape_;
  DType dtype_;
  size_t flat_bytes_ = 0;
};

absl::Status PlainAndScattered(const ir::Node& node) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  if (!cuda::CanScatter(ElementScatter(TakeShapeOf(node, node.output_type().shape)))) {
    return Unimplemented("row and position do not fit a sort key of 63 bits");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cuda_take_along_dim(KernelRegistry& r) {
  AddCudaKernel<TakeKernel>(r, "take_along_dim", ir::kAnyDType, PlainInputs);
  AddCudaKernel<TakeGradKernel>(r, "take_along_dim_grad", ir::kFloats, PlainAndScattered);
}

}  // namespace halftone::kernels
