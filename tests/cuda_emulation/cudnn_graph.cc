// The emulated cuDNN's operation graphs: a convolution or one of its gradients, and a bias behind
// it.
#include <set>

#include "halftone/tests/cuda_emulation/cudnn_descriptor.h"

namespace halftone::emulation::cudnn {
namespace {

int64_t UidOf(const Descriptor& tensor) {
  return tensor.Value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
}

// Alpha or beta, given as float or double.
double Scale(const Descriptor& op, cudnnBackendAttributeName_t name) {
  const auto found = op.attributes.find(name);
  return found->second.type == CUDNN_TYPE_DOUBLE ? op.Value<double>(name, 0)
                                                 : op.Value<float>(name, 0);
}

}  // namespace

bool IsVirtual(const Descriptor& tensor) {
  return tensor.Value<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0;
}

Operand OperandOf(const Descriptor& tensor) {
  return {UidOf(tensor), tensor.Value(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT),
          tensor.Ints(CUDNN_ATTR_TENSOR_DIMENSIONS), tensor.Ints(CUDNN_ATTR_TENSOR_STRIDES),
          tensor.Value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1)};
}

Names NamesOf(Product product) {
  switch (product) {
    case Product::kGradInput:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Product::kGradWeight:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Product::kForward:
      break;
  }
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

bool ProductOf(cudnnBackendDescriptorType_t type, Product& product) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      product = Product::kForward;
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      product = Product::kGradInput;
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      product = Product::kGradWeight;
      return true;
    default:
      return false;
  }
}

cudnnStatus_t ReadGraph(const Descriptor& graph, Convolution& conv) {
  const auto ops = graph.References(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (ops.empty() || !ProductOf(ops[0]->type, conv.product)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM,
                  "operation graph: a convolution first is all that is emulated");
  }
  const Descriptor& op = *ops[0];
  const Names names = NamesOf(conv.product);
  const Descriptor* result = op.Reference(conv.product == Product::kForward     ? names.y
                                          : conv.product == Product::kGradInput ? names.x
                                                                                : names.w);
  conv.x = OperandOf(*op.Reference(names.x));
  conv.w = OperandOf(*op.Reference(names.w));
  conv.y = OperandOf(*op.Reference(names.y));
  conv.alpha = Scale(op, names.alpha);
  conv.beta = Scale(op, names.beta);
  const Descriptor& parameters = *op.Reference(names.conv);
  conv.padding = parameters.Ints(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  conv.stride = parameters.Ints(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  conv.dilation = parameters.Ints(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  std::set<int64_t> uids = {conv.x.uid, conv.w.uid, conv.y.uid};
  size_t expected = 3;
  if (ops.size() > 1) {
    const Descriptor& add = *ops[1];
    if (ops.size() > 2 || conv.product != Product::kForward ||
        add.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
        UidOf(*add.Reference(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)) != conv.y.uid ||
        !IsVirtual(*result)) {
      return Refuse(CUDNN_STATUS_BAD_PARAM,
                    "operation graph: only a bias behind a convolution is emulated");
    }
    result = add.Reference(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    conv.y = OperandOf(*result);
    conv.has_bias = true;
    conv.bias = OperandOf(*add.Reference(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    uids.insert({conv.y.uid, conv.bias.uid});
    expected += 2;
  }
  if (uids.size() != expected)
    return Refuse(CUDNN_STATUS_BAD_PARAM, "operation graph: a unique id twice");
  for (const cudnnBackendAttributeName_t name : {names.x, names.w, names.y}) {
    const Descriptor* const tensor = op.Reference(name);
    const bool hidden = conv.has_bias && name == names.y;
    if (IsVirtual(*tensor) != hidden) {
      return Refuse(CUDNN_STATUS_BAD_PARAM,
                    "operation graph: a virtual tensor that no operation fills or reads");
    }
  }
  if (IsVirtual(*result))
    return Refuse(CUDNN_STATUS_BAD_PARAM, "operation graph: its result is virtual");
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace halftone::emulation::cudnn
