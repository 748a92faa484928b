// gather, embedding and their gradients.
#include "halftone/kernels/cuda/ops/gather.h"

#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/cuda/device/index_check.h"
#include "halftone/kernels/cuda/ops/scatter.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

// The table (x of the op, dx of its gradient) as [outer, rows, inner]; embeddings have no axis.
struct Table {
  int64_t outer = 1, rows = 0, inner = 1;

  Table(const ir::Node& node, const Shape& shape) {
    const int axis =
        node.attrs().Has("axis") ? ops::CheckedAxis(node.attrs().GetInt("axis"), shape.rank()) : 0;
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    rows = shape[axis];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

absl::Status CheckIndices(const KernelArgs& args, int64_t count, bool wide, int64_t rows,
                          cudaStream_t stream) {
  const cuda::IndexCheck check{args.inputs[1], count, wide, rows};
  HT_CUDA_RETURN_IF_ERROR(LaunchIndexCheck(check, args.fault_id, args.state->device, stream));
  return absl::OkStatus();
}

class GatherKernel : public CudaKernel {
 public:
  explicit GatherKernel(const ir::Node& node) {
    const ir::ValueType& x = node.input_type(0);
    const Table table(node, x.shape);
    shape_ = {table.outer, table.rows, node.input_type(1).num_elements(),
              table.inner * static_cast<int64_t>(SizeOf(x.dtype)),
              node.input_type(1).dtype == DType::kI64};
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckIndices(args, shape_.picks, shape_.wide, shape_.rows, stream));
    HT_CUDA_RETURN_IF_ERROR(
        LaunchGather(shape_, args.inputs[0], args.inputs[1], args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  cuda::GatherShape shape_;
};

cuda::ScatterShape ScatterShapeOf(const ir::Node& node) {
  const Table table(node, node.output_type().shape);
  const ir::Attributes& attrs = node.attrs();
  return {table.outer,
          table.rows,
          node.input_type(1).num_elements(),
          table.inner,
          attrs.Has("padding_idx") ? attrs.GetInt("padding_idx") : -1,
          node.input_type(1).dtype == DType::kI64};
}

class ScatterKernel : public CudaKernel {
 public:
  explicit ScatterKernel(const ir::Node& node)
      : shape_(ScatterShapeOf(node)),
        dy_(node.input_type(0).dtype),
        dx_(node.output_type().dtype),
        has_base_(node.num_inputs() > 2) {
    workspace_bytes_ = cuda::ScatterWorkspace(shape_);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckIndices(args, shape_.picks, shape_.wide, shape_.rows, stream));
    const void* const base = has_base_ ? args.inputs[2] : nullptr;
    HT_CUDA_RETURN_IF_ERROR(LaunchScatter(shape_, dy_, dx_, args.inputs[0], args.inputs[1], base,
                                          args.workspace, args.outputs[0], stream));
    return absl::OkStatus();
  }

 private:
  cuda::ScatterShape shape_;
  DType dy_, dx_;
  bool has_base_;
};

// Of an op that says how many rows the table has.
cuda::ScatterShape RowsShapeOf(const ir::Node& node) {
  return {1,
          node.attrs().GetInt("rows"),
          node.input_type(1).num_elements(),
          node.output_type().shape[1],
          node.attrs().GetInt("padding_idx"),
          node.input_type(1).dtype == DType::kI64};
}

class ScatterRowsKernel : public CudaKernel {
 public:
  explicit ScatterRowsKernel(const ir::Node& node)
      : shape_(RowsShapeOf(node)), dy_(node.input_type(0).dtype), drows_(node.output_type().dtype) {
    workspace_bytes_ = cuda::ScatterRowsWorkspace(shape_);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    HT_RETURN_IF_ERROR(CheckIndices(args, shape_.picks, shape_.wide, shape_.rows, stream));
    HT_CUDA_RETURN_IF_ERROR(LaunchScatterRows(shape_, dy_, drows_, args.inputs[0], args.inputs[1],
                                              args.workspace, args.outputs[0],
                                              static_cast<int64_t*>(args.outputs[1]), stream));
    return absl::OkStatus();
  }

 private:
  cuda::ScatterShape shape_;
  DType dy_, drows_;
};

template <cuda::ScatterShape (*kShapeOf)(const ir::Node&)>
absl::Status PlainAndSortable(const ir::Node& node) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  if (!cuda::CanScatter(kShapeOf(node))) {
    return Unimplemented("row and position do not fit a sort key of 63 bits");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cuda_gather(KernelRegistry& r) {
  AddCudaKernel<GatherKernel>(r, "gather", ir::kAnyDType, PlainInputs);
  AddCudaKernel<GatherKernel>(r, "embedding", ir::kFloats, PlainInputs);
  AddCudaKernel<ScatterKernel>(r, "gather_grad", ir::kFloats, PlainAndSortable<ScatterShapeOf>);
  AddCudaKernel<ScatterKernel>(r, "embedding_grad", ir::kFloats, PlainAndSortable<ScatterShapeOf>);
  AddCudaKernel<ScatterRowsKernel>(r, "embedding_grad_rows", ir::kFloats,
                                   PlainAndSortable<RowsShapeOf>);
}

}  // namespace halftone::kernels
