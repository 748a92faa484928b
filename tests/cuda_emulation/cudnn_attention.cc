// The emulated cuDNN's attention: graphs of products, reductions, pointwise operations and reshapes.
// Supported are the compositions that the library (9.19) was seen to plan for a device described in
// JSON.
#include "halftone/tests/cuda_emulation/cudnn_attention.h"

#include <algorithm>
#include <set>

namespace halftone::emulation::cudnn {
namespace {

constexpr cudnnStatus_t kMisuse = CUDNN_STATUS_BAD_PARAM;
constexpr int64_t kMostColumns = 256;

using Dims = std::vector<int64_t>;

struct OperationNames {
  std::vector<cudnnBackendAttributeName_t> inputs;  // pointwise: b and t may be absent
  cudnnBackendAttributeName_t output, how;          // of a reshape there is no `how`
};

OperationNames NamesOf(const Descriptor& op) {
  switch (op.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
              CUDNN_ATTR_OPERATION_MATMUL_CDESC,
              CUDNN_ATTR_OPERATION_MATMUL_DESC};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
              CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
              CUDNN_ATTR_OPERATION_REDUCTION_DESC};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
              CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
              CUDNN_ATTR_OPERATION_RESHAPE_XDESC};
    default:
      return {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
               CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
              CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR};
  }
}

}  // namespace

cudnnPointwiseMode_t ModeOf(const Descriptor& op) {
  return op.Reference(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
      ->Value(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
}

cudnnReduceTensorOp_t ReductionOf(const Descriptor& op) {
  return op.Reference(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
      ->Value(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_AVG);
}

std::vector<int64_t> DimsOf(const Descriptor& tensor) {
  return tensor.Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
}

int64_t ElementsOf(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

std::vector<const Descriptor*> InputsOf(const Descriptor& op) {
  std::vector<const Descriptor*> tensors;
  for (const auto name : NamesOf(op).inputs) {
    if (const Descriptor* const tensor = op.Reference(name)) tensors.push_back(tensor);
  }
  return tensors;
}

const Descriptor& OutputOf(const Descriptor& op) { return *op.Reference(NamesOf(op).output); }

bool IsLow(cudnnDataType_t dtype) {
  return dtype == CUDNN_DATA_HALF || dtype == CUDNN_DATA_BFLOAT16;
}

namespace {

// How many inputs the mode has.
size_t Arity(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 2;
  }
}

bool IsByValue(const Descriptor& tensor) {
  return tensor.Value<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
}

// Whether each extent is that of `of`, or divides it.
bool Divides(const Dims& dims, const Dims& of) {
  for (size_t i = 0; i < kAttentionRank; ++i) {
    if (dims[i] == 0 || of[i] % dims[i] != 0) return false;
  }
  return true;
}

// Whether each extent is that of `of`, or 1.
bool Repeats(const Dims& dims, const Dims& of) {
  for (size_t i = 0; i < kAttentionRank; ++i) {
    if (dims[i] != of[i] && dims[i] != 1) return false;
  }
  return true;
}

bool ShapesFit(const Descriptor& op) {
  const auto inputs = InputsOf(op);
  const Dims x = DimsOf(*inputs[0]), y = DimsOf(OutputOf(op));
  switch (op.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
      const Dims b = DimsOf(*inputs[1]);
      const bool heads = b[1] > 0 && x[1] % b[1] == 0;
      return x[0] == b[0] && heads && x[3] == b[2] && y == Dims{x[0], x[1], x[2], b[3]};
    }
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return Divides(y, x);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return ElementsOf(x) == ElementsOf(y);
    default:
      return x == y && inputs.size() == Arity(ModeOf(op)) &&
             (inputs.size() < 2 || Repeats(DimsOf(*inputs[1]), x)) &&
             (inputs.size() < 3 || DimsOf(*inputs[2]) == x);
  }
}

cudnnStatus_t FinalizeOperation(const Descriptor& op) {
  const OperationNames names = NamesOf(op);
  for (size_t i = 0; i < names.inputs.size(); ++i) {
    const Descriptor* const tensor = op.Reference(names.inputs[i]);
    const bool needed = i == 0 || op.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    if (tensor == nullptr ? needed : tensor->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
      return Refuse(kMisuse, "operation: a tensor is missing");
    }
  }
  const Descriptor* const y = op.Reference(names.output);
  if (y == nullptr || y->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    return Refuse(kMisuse, "operation: its result is missing");
  }
  if (op.Reference(names.how) == nullptr) return Refuse(kMisuse, "operation: no parameters");
  auto tensors = InputsOf(op);
  tensors.push_back(y);
  for (const Descriptor* tensor : tensors) {
    if (DimsOf(*tensor).size() != kAttentionRank) {
      return Refuse(kMisuse, "operation: a tensor that is not of rank 4");
    }
  }
  if (!ShapesFit(op)) return Refuse(kMisuse, "operation: shapes do not fit");
  return CUDNN_STATUS_SUCCESS;
}

// A letter an operation.
char LetterOf(const Descriptor& op) {
  switch (op.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return 'M';
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return 'R';
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return ReductionOf(op) == CUDNN_REDUCE_TENSOR_MAX ? '^' : '+';
    default:
      break;
  }
  switch (ModeOf(op)) {
    case CUDNN_POINTWISE_MUL:
      return '*';
    case CUDNN_POINTWISE_SUB:
      return '-';
    case CUDNN_POINTWISE_DIV:
      return '/';
    case CUDNN_POINTWISE_EXP:
      return 'e';
    case CUDNN_POINTWISE_GEN_INDEX:
      return 'i';
    case CUDNN_POINTWISE_CMP_GE:
      return 'c';
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 's';
    default:
      return '?';
  }
}

bool IsKnownComposition(const std::string& letters) {
  for (const std::string causal : {"", "iics"}) {
    if (letters == "M*" + causal + "^-e+/M") return true;
    for (const std::string groups : {"", "+"}) {
      const std::string of_keys = "RM" + groups;
      if (letters == "*+*M*-" + causal + "e" + of_keys + "M-**" + of_keys + "RM") return true;
    }
  }
  return false;
}

}  // namespace

bool IsAttention(const Descriptor& graph) {
  const auto ops = graph.References(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  return std::any_of(ops.begin(), ops.end(), [](const DescriptorPtr& op) {
    return op->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  });
}

cudnnStatus_t FinalizeAttentionPart(const Descriptor& d) {
  if (d.type == CUDNN_BACKEND_MATMUL_DESCRIPTOR) {
    return d.Value(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_HALF) == CUDNN_DATA_FLOAT
               ? CUDNN_STATUS_SUCCESS
               : Refuse(kMisuse, "product: only f32 sums are emulated");
  }
  if (d.type != CUDNN_BACKEND_REDUCTION_DESCRIPTOR) return FinalizeOperation(d);
  const auto how = d.Value(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_AVG);
  if ((how != CUDNN_REDUCE_TENSOR_ADD && how != CUDNN_REDUCE_TENSOR_MAX) ||
      d.Value(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_HALF) != CUDNN_DATA_FLOAT) {
    return Refuse(kMisuse, "reduction: only sums and maxima in f32 are emulated");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CheckAttention(const Descriptor& graph) {
  std::map<int64_t, const Descriptor*> of_uid;
  std::set<int64_t> made;
  for (const DescriptorPtr& op : graph.References(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    auto tensors = InputsOf(*op);
    for (const Descriptor* tensor : tensors) {
      if (IsVirtual(*tensor) && made.count(OperandOf(*tensor).uid) == 0) {
        return Refuse(kMisuse, "operation graph: a virtual tensor that no operation has filled");
      }
    }
    const Descriptor& y = OutputOf(*op);
    if (IsByValue(y)) return Refuse(kMisuse, "operation graph: a result by value");
    if (!made.insert(OperandOf(y).uid).second) {
      return Refuse(kMisuse, "operation graph: a tensor filled twice");
    }
    tensors.push_back(&y);
    for (const Descriptor* tensor : tensors) {
      const auto [known, is_new] = of_uid.try_emplace(OperandOf(*tensor).uid, tensor);
      if (DimsOf(*known->second) != DimsOf(*tensor)) {
        return Refuse(kMisuse, "operation graph: a unique id of two tensors");
      }
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

bool SupportsAttention(const Descriptor& graph) {
  std::string letters;
  for (const DescriptorPtr& op : graph.References(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    letters += LetterOf(*op);
    // Tensor cores' operands; sums are wider.
    if (op->type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) continue;
    const auto inputs = InputsOf(*op);
    const auto dtype = OperandOf(*inputs[0]).dtype;
    if (!IsLow(dtype) || dtype != OperandOf(*inputs[1]).dtype) return false;
  }
  if (!IsKnownComposition(letters)) return false;
  for (const AttentionOperand& o : AttentionOperands(graph)) {
    if (!IsLow(o.operand.dtype)) continue;
    const auto inner = std::find(o.operand.strides.begin(), o.operand.strides.end(), 1);
    if (inner == o.operand.strides.end()) return false;
    const int64_t columns = o.operand.dims[inner - o.operand.strides.begin()];
    if (columns % 8 != 0 || columns > kMostColumns || o.operand.elements() == 0) return false;
  }
  return true;
}

std::vector<AttentionOperand> AttentionOperands(const Descriptor& graph) {
  std::map<int64_t, AttentionOperand> operands;
  for (const DescriptorPtr& op : graph.References(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    auto tensors = InputsOf(*op);
    tensors.push_back(&OutputOf(*op));
    for (const Descriptor* tensor : tensors) {
      if (IsVirtual(*tensor)) continue;
      const Operand operand = OperandOf(*tensor);
      operands[operand.uid] = {operand, IsByValue(*tensor)};
    }
  }
  std::vector<AttentionOperand> in_order;
  for (const auto& [uid, operand] : operands) in_order.push_back(operand);
  return in_order;
}

}  // namespace halftone::emulation::cudnn
