#include "halftone/tests/support/tolerances.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

const std::map<std::string, OpClass>& Classes() {
  static const auto* const classes = [] {
    auto* map = new std::map<std::string, OpClass>;
    for (const char* op :
         {"relu",          "relu_grad",    "neg",        "abs",          "floor",      "add",
          "sub",           "mul",          "div",        "sqrt",         "reciprocal", "maximum",
          "minimum",       "equal",        "not_equal",  "less",         "less_equal", "greater",
          "greater_equal", "logical_and",  "logical_or", "logical_not",  "isfinite",   "where",
          "cast",          "broadcast_to", "max",        "argmax",       "reshape",    "transpose",
          "slice",         "slice_grad",   "concat",     "gather",       "embedding",  "max_pool2d",
          "dropout",       "detach",       "square",     "sign",         "round",      "ceil",
          "relu6",         "relu6_grad",   "hardtanh",   "hardtanh_grad"}) {
      (*map)[op] = OpClass::kExact;
    }
    for (const char* op : {"flip", "pad", "sort", "take_along_dim", "random_uniform",
                           "random_normal", "bernoulli", "f8_quantise", "f8_scale_update"}) {
      (*map)[op] = OpClass::kExact;
    }
    for (const char* op : {"exp", "log", "cos", "sin", "erf", "pow", "sigmoid", "sigmoid_grad",
                           "tanh", "tanh_grad", "silu", "silu_grad", "gelu", "gelu_grad"}) {
      (*map)[op] = OpClass::kFunction;
    }
    for (const char* op : {"sum", "mean", "sum_to_shape", "gather_grad", "embedding_grad",
                           "embedding_grad_rows", "avg_pool2d", "avg_pool2d_grad",
                           "max_pool2d_grad", "conv2d_grad_bias", "conv3d_grad_bias"}) {
      (*map)[op] = OpClass::kSum;
    }
    for (const char* op : {"cumsum", "prod", "take_along_dim_grad"}) (*map)[op] = OpClass::kSum;
    for (const char* op : {"matmul", "linear", "conv2d", "conv2d_grad_input", "conv2d_grad_weight",
                           "conv3d", "conv3d_grad_input", "conv3d_grad_weight", "f8_matmul"}) {
      (*map)[op] = OpClass::kContraction;
    }
    return map;
  }();
  return *classes;
}

}  // namespace

OpClass OpClassOf(const std::string& op) {
  const auto found = Classes().find(op);
  return found == Classes().end() ? OpClass::kComposite : found->second;
}

Tolerance ToleranceFor(OpClass op_class, DType dtype) {
  if (op_class == OpClass::kExact || !IsFloat(dtype)) return {};
  const double wide = Epsilon(Promote(dtype, DType::kF32));  // of the arithmetic
  Tolerance t;
  switch (op_class) {
    case OpClass::kExact:
      break;
    case OpClass::kFunction:
      t = {8 * wide, 4 * wide, 0};
      break;
    case OpClass::kSum:
      t = {4 * wide, 16 * wide, 0};
      break;
    case OpClass::kContraction:
      t = {8 * wide, 64 * wide, 0};
      break;
    case OpClass::kComposite:
      t = {16 * wide, 32 * wide, 0};
      break;
  }
  t.smallest = MinSubnormal(dtype);
  if (IsLow(dtype)) t.relative += Epsilon(dtype);  // a neighbour
  return t;
}

::testing::AssertionResult AgreesWithReference(const std::string& op, const Tensor& got,
                                               const Tensor& want, const Slack& slack) {
  if (got.dtype() != want.dtype()) {
    return ::testing::AssertionFailure()
           << "got " << got.TypeString() << ", expected " << want.TypeString();
  }
  const Tolerance t = ToleranceFor(OpClassOf(op), want.dtype());
  double largest = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::abs(want.at(i)));
  }
  const double share = IsLow(want.dtype()) ? slack.of_largest_in_low * Epsilon(want.dtype()) : 0;
  return IsClose(got, want, slack.factor * t.relative,
                 (slack.factor * t.absolute + share) * largest + t.smallest + slack.absolute);
}

}  // namespace halftone::testing
