// scaled_dot_product_attention by our own kernels: every shape and dtype, what cudnn_attention.cc
// leaves.
#include "halftone/kernels/cuda/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "halftone/graph/ops/support/attention.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

static_assert(cuda::kMaxAttentionAxes == kMaxRank - 2);

cuda::AttentionRows RowsOf(const ops::OperandView& view) {
  const ops::HeadRows rows = ops::HeadRowsOf(view);
  return {rows.offset, rows.heads, rows.batch, rows.head, rows.row};
}

cuda::AttentionParams AttentionParamsOf(const ir::Node& node, int mask_port) {
  const ops::AttentionViews views = ops::AttentionViewsOf(node);
  const Shape &q = views.query.shape, &k = views.key.shape;
  const int rank = q.rank();
  const double p = node.attrs().GetFloat("dropout_p"), keep = 1 / (1 - p);
  cuda::AttentionParams params{};
  params.dtype = node.output_type().dtype;
  params.heads = 1;
  for (int i = 0; i + 2 < rank; ++i) params.heads *= q[i];
  params.group = rank > 2 && k[rank - 3] > 0 ? q[rank - 3] / k[rank - 3] : 1;
  params.length = q[rank - 2];
  params.keys = k[rank - 2];
  params.columns = q[rank - 1];
  params.v_columns = views.value.shape[rank - 1];
  params.q = RowsOf(views.query);
  params.k = RowsOf(views.key);
  params.v = RowsOf(views.value);
  params.y = RowsOf(views.PlacedView(views.YShape()));
  params.dq = RowsOf(views.PlacedView(q));
  params.dk = RowsOf(views.PlacedView(k));
  params.dv = RowsOf(views.PlacedView(views.value.shape));
  params.scale = node.attrs().GetFloat("scale");
  params.causal = node.attrs().GetBool("is_causal");
  params.seed = static_cast<uint64_t>(node.attrs().GetInt("seed"));
  // u * 2^-24 >= p for whole u.
  params.threshold = static_cast<int32_t>(std::ceil(p * 0x1p24));
  params.keep = params.dtype == DType::kF64 ? keep : static_cast<double>(static_cast<float>(keep));
  params.has_mask = node.num_inputs() > mask_port;
  if (!params.has_mask) return params;
  const ir::ValueType& mask = node.input_type(mask_port);
  params.bool_mask = mask.dtype == DType::kBool;
  const auto strides = mask.shape.strides();
  const auto stride_of = [&](int axis) {
    const int own = axis - (rank - mask.shape.rank());
    return own < 0 || mask.shape[own] == 1 ? int64_t{0} : strides[own];
  };
  params.mask_row = stride_of(rank - 2);
  params.mask_column = stride_of(rank - 1);
  for (int axis = 0; axis + 2 < rank; ++axis) {
    params.axis[params.axes++] = {q[axis], stride_of(axis)};
  }
  return params;
}

class AttentionKernel : public CudaKernel {
 public:
  explicit AttentionKernel(const ir::Node& node) : params_(AttentionParamsOf(node, 3)) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const cuda::AttentionArrays arrays{args.inputs[0],  args.inputs[1],
                                       args.inputs[2],  params_.has_mask ? args.inputs[3] : nullptr,
                                       args.outputs[0], args.outputs[1]};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchAttention(params_, arrays, args.state->device, stream));
    return absl::OkStatus();
  }

 private:
  cuda::AttentionParams params_;
};

class AttentionGradKernel : public CudaKernel {
 public:
  explicit AttentionGradKernel(const ir::Node& node) : params_(AttentionParamsOf(node, 6)) {
    workspace_bytes_ = static_cast<size_t>(params_.heads * params_.length) *
                       (params_.dtype == DType::kF64 ? sizeof(double) : sizeof(float));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const cuda::AttentionGradArrays arrays{args.inputs[0],
                                           args.inputs[1],
                                           args.inputs[2],
                                           args.inputs[3],
                                           args.inputs[4],
                                           args.inputs[5],
                                           params_.has_mask ? args.inputs[6] : nullptr,
                                           args.outputs[0],
                                           args.outputs[1],
                                           args.outputs[2],
                                           args.workspace};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchAttentionGrad(params_, arrays, args.state->device, stream));
    return absl::OkStatus();
  }

 private:
  cuda::AttentionParams params_;
};

}  // namespace

void Register_cuda_attention(KernelRegistry& r) {
  AddCudaKernel<AttentionKernel>(r, "scaled_dot_product_attention", ir::kFloats, PlainInputs);
  AddCudaKernel<AttentionGradKernel>(r, "scaled_dot_product_attention_grad", ir::kFloats,
                                     PlainInputs);
}

}  // namespace halftone::kernels
