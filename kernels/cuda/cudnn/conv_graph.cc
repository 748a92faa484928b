#include "halftone/kernels/cuda/cudnn/conv_graph.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kUidProduct = 5;  // the convolution before the bias is added

// The attributes of the three kinds of convolution.
struct OpNames {
  cudnnBackendDescriptorType_t type;
  const char* what;
  cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
};

OpNames NamesOf(ConvProduct product) {
  switch (product) {
    case ConvProduct::kGradInput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              "convolution's input gradient",
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvProduct::kGradWeight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              "convolution's weight gradient",
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case ConvProduct::kForward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          "convolution",
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

absl::StatusOr<CudnnDescriptor> MakeConvolution(const CudnnConv& conv) {
  CudnnDescriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution parameters");
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  d.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(conv.stride.size()))
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, conv.padding)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, conv.padding)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, conv.stride)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, conv.dilation);
  HT_RETURN_IF_ERROR(d.Finalize());
  return d;
}

}  // namespace

CudnnPromises CudnnConv::promises() const {
  return {x.dtype != CUDNN_DATA_FLOAT, tf32_is_exact, allow_tf32, deterministic};
}

std::string CudnnConv::ToString() const {
  const char* const products[] = {"conv", "dgrad", "wgrad"};
  std::string text = products[static_cast<int>(product)];
  for (const CudnnTensor* t : {&x, &w, &y}) {
    text += Concat(" ", t->ToString());
  }
  if (has_bias) text += Concat(" bias ", static_cast<int>(bias_dtype));
  if (accumulate) text += " accumulate";
  if (tf32_is_exact) text += " tf32";
  if (allow_tf32) text += " allow_tf32";
  if (!deterministic) text += " nondeterministic";
  return text + Concat(" s", JoinInts(stride), " p", JoinInts(padding), " d", JoinInts(dilation));
}

std::vector<int64_t> CudnnConvGraph::uids() const {
  std::vector<int64_t> uids = {kUidX, kUidW, kUidY};
  if (conv_.has_bias) uids.push_back(kUidBias);
  return uids;
}

absl::StatusOr<std::shared_ptr<const CudnnConvGraph>> CudnnConvGraph::Make(
    const CudnnConv& conv, const CudnnTarget& target) {
  std::shared_ptr<CudnnConvGraph> graph(new CudnnConvGraph(conv));
  HT_RETURN_IF_ERROR(graph->Build(target));
  return std::shared_ptr<const CudnnConvGraph>(std::move(graph));
}

absl::Status CudnnConvGraph::Build(const CudnnTarget& target) {
  HT_ASSIGN_OR_RETURN(CudnnDescriptor x, MakeCudnnTensor(conv_.x, kUidX, "tensor x"));
  HT_ASSIGN_OR_RETURN(CudnnDescriptor w, MakeCudnnTensor(conv_.w, kUidW, "tensor w"));
  HT_ASSIGN_OR_RETURN(CudnnDescriptor y, MakeCudnnTensor(conv_.y, kUidY, "tensor y"));
  HT_ASSIGN_OR_RETURN(CudnnDescriptor parameters, MakeConvolution(conv_));
  CudnnDescriptor product;  // what the convolution itself writes, where that is not y
  if (conv_.has_bias) {
    CudnnTensor sum = conv_.y;
    sum.dtype = CUDNN_DATA_FLOAT;
    HT_ASSIGN_OR_RETURN(
        product, MakeCudnnTensor(sum, kUidProduct, "tensor before the bias", TensorKind::kVirtual));
  }

  const OpNames names = NamesOf(conv_.product);
  CudnnDescriptor op(names.type, names.what);
  op.Set(names.x, x)
      .Set(names.w, w)
      .Set(names.y, conv_.has_bias ? product : y)
      .Set(names.conv, parameters)
      .Set(names.alpha, 1.0F)
      .Set(names.beta, conv_.accumulate ? 1.0F : 0.0F);
  HT_RETURN_IF_ERROR(op.Finalize());
  ops_.push_back(std::move(op));

  if (conv_.has_bias) {
    const int64_t o = conv_.y.dims[1];
    CudnnTensor shape = conv_.y;
    shape.dtype = conv_.bias_dtype;
    shape.dims.assign(shape.dims.size(), 1);
    shape.strides.assign(shape.dims.size(), o);
    shape.dims[1] = o;
    shape.strides[1] = 1;
    HT_ASSIGN_OR_RETURN(CudnnDescriptor bias, MakeCudnnTensor(shape, kUidBias, "tensor b"));
    CudnnDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "addition");
    const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    add.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
        .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    HT_RETURN_IF_ERROR(add.Finalize());
    CudnnDescriptor add_op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "bias addition");
    add_op.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, product)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    HT_RETURN_IF_ERROR(add_op.Finalize());
    ops_.push_back(std::move(add_op));
    parts_.push_back(std::move(bias));
    parts_.push_back(std::move(add));
    parts_.push_back(std::move(product));
  }

  for (CudnnDescriptor* part : {&x, &w, &y, &parameters}) parts_.push_back(std::move(*part));
  return FinishGraph(target);
}

}  // namespace halftone::cuda
