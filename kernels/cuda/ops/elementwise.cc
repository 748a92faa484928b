// Elementwise ops of one or two operands.
#include "halftone/kernels/cuda/ops/elementwise.h"

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/device/map_plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

using cuda::Formula;

struct FormulaRow {
  const char* name;  // of the op; "gelu:tanh" for one of its variants
  Formula formula;
  bool swapped = false;  // greater(a, b) is less(b, a)
};
constexpr FormulaRow kRows[] = {
    {"relu", Formula::kRelu},
    {"sigmoid", Formula::kSigmoid},
    {"tanh", Formula::kTanh},
    {"silu", Formula::kSilu},
    {"gelu:none", Formula::kGeluErf},
    {"gelu:tanh", Formula::kGeluTanh},
    {"exp", Formula::kExp},
    {"log", Formula::kLog},
    {"sqrt", Formula::kSqrt},
    {"neg", Formula::kNeg},
    {"abs", Formula::kAbs},
    {"floor", Formula::kFloor},
    {"cos", Formula::kCos},
    {"sin", Formula::kSin},
    {"erf", Formula::kErf},
    {"reciprocal", Formula::kReciprocal},
    {"isfinite", Formula::kIsFinite},
    {"logical_not", Formula::kNot},
    {"relu_grad", Formula::kReluGrad},
    {"sigmoid_grad", Formula::kSigmoidGrad},
    {"tanh_grad", Formula::kTanhGrad},
    {"silu_grad", Formula::kSiluGrad},
    {"gelu_grad:none", Formula::kGeluErfGrad},
    {"gelu_grad:tanh", Formula::kGeluTanhGrad},
    {"add", Formula::kAdd},
    {"sub", Formula::kSub},
    {"mul", Formula::kMul},
    {"div", Formula::kDiv},
    {"maximum", Formula::kMaximum},
    {"minimum", Formula::kMinimum},
    {"pow", Formula::kPow},
    {"equal", Formula::kEqual},
    {"not_equal", Formula::kNotEqual},
    {"less", Formula::kLess},
    {"less_equal", Formula::kLessEqual},
    {"greater", Formula::kLess, /*swapped=*/true},
    {"greater_equal", Formula::kLessEqual, /*swapped=*/true},
    {"logical_and", Formula::kAnd},
    {"logical_or", Formula::kOr},
};

const FormulaRow& RowOf(const ir::Node& node) {
  std::string name = node.op().name;
  const ir::AttrValue* variant = node.attrs().Find("approximate");
  if (variant != nullptr) name += ":" + std::get<std::string>(*variant);
  for (const FormulaRow& row : kRows) {
    if (row.name == name) return row;
  }
  HT_CHECK(false, "no formula for the op");
}

bool IsGrad(Formula formula) {
  return formula >= Formula::kReluGrad && formula <= Formula::kGeluTanhGrad;
}

cudaError_t LaunchF32(Formula formula, const cuda::MapParams<1>& params, cudaStream_t stream) {
  return LaunchUnary(formula, params, stream);
}
cudaError_t LaunchF32(Formula formula, const cuda::MapParams<2>& params, cudaStream_t stream) {
  return IsGrad(formula) ? LaunchGrad(formula, params, stream)
                         : LaunchBinary(formula, params, stream);
}

template <int N>
class ElementwiseKernel : public CudaKernel {
 public:
  explicit ElementwiseKernel(const ir::Node& node)
      : row_(RowOf(node)),
        dtype_(node.input_type(0).dtype),
        params_(cuda::PlanMap<N>(node, Order(row_.swapped))) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.size == 0) return absl::OkStatus();
    const cuda::MapParams<N> params = cuda::WithArrays<N>(params_, args, Order(row_.swapped));
    if (dtype_ == DType::kF64) {
      HT_CUDA_RETURN_IF_ERROR(LaunchF64(row_.formula, params, stream));
    } else if (IsFloat(dtype_)) {
      HT_CUDA_RETURN_IF_ERROR(LaunchF32(row_.formula, params, stream));
    } else {
      HT_CUDA_RETURN_IF_ERROR(LaunchWhole(row_.formula, params, stream));
    }
    return absl::OkStatus();
  }

 private:
  // The port of each operand of the formula.
  static std::array<int, N> Order(bool swapped) {
    std::array<int, N> ports{};
    for (int k = 0; k < N; ++k) ports[k] = swapped ? N - 1 - k : k;
    return ports;
  }

  FormulaRow row_;
  DType dtype_;
  cuda::MapParams<N> params_;
};

}  // namespace

void Register_cuda_elementwise(KernelRegistry& r) {
  for (const char* op :
       {"relu", "sigmoid", "tanh", "silu", "gelu", "exp", "log", "sqrt", "neg", "abs", "floor",
        "cos", "sin", "erf", "reciprocal", "isfinite", "logical_not"}) {
    AddCudaKernel<ElementwiseKernel<1>>(r, op, ir::kAnyDType);
  }
  for (const char* op :
       {"relu_grad",  "sigmoid_grad", "tanh_grad",     "silu_grad",   "gelu_grad",
        "add",        "sub",          "mul",           "div",         "maximum",
        "minimum",    "pow",          "equal",         "not_equal",   "less",
        "less_equal", "greater",      "greater_equal", "logical_and", "logical_or"}) {
    AddCudaKernel<ElementwiseKernel<2>>(r, op, ir::kAnyDType);
  }
}

}  // namespace halftone::kernels
