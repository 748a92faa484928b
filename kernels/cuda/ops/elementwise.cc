// Elementwise ops of one or two operands.
#include "halftone/kernels/cuda/ops/elementwise.h"

#include <algorithm>

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/device/map_plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/formula.h"

namespace halftone {
namespace cuda {
namespace {

constexpr FormulaRow kFormulaRows[] = {
#define HT_UNARY(op, Name, ...) {#op, Formula::k##Name},
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) \
  {#op ":none", Formula::k##ByErf}, {#op ":tanh", Formula::k##ByTanh},
#define HT_GRADIENT HT_UNARY
#define HT_APPROXIMABLE_GRADIENT HT_APPROXIMABLE
#define HT_BINARY HT_UNARY
#define HT_SCALAR_BINARY HT_UNARY
#define HT_COMPARE HT_UNARY
#define HT_COMPARE_SWAPPED(op, Name, ...) {#op, Formula::k##Name, /*swapped=*/true},
#define HT_LOGICAL HT_UNARY
#include "halftone/graph/ops/support/elementwise.def"
};

}  // namespace

const FormulaRow* FindFormula(const std::string& name) {
  for (const FormulaRow& row : kFormulaRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace cuda

namespace kernels {
namespace {

const cuda::FormulaRow& RowOf(const ir::Node& node) {
  const cuda::FormulaRow* const row = cuda::FindFormula(FormulaOf(node));
  HT_CHECK(row != nullptr, "no formula for the op");
  return *row;
}

template <int N>
class ElementwiseKernel : public CudaKernel {
 public:
  explicit ElementwiseKernel(const ir::Node& node)
      : row_(RowOf(node)),
        dtype_(node.input_type(0).dtype),
        params_(cuda::PlanMap<N>(node, Order(row_.swapped))) {
    const FormulaNumbers numbers = NumbersOf(node.op(), node.attrs());
    std::copy(numbers.begin(), numbers.end(), params_.numbers);
  }

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

  cuda::FormulaRow row_;
  DType dtype_;
  cuda::MapParams<N> params_;
};

}  // namespace

void Register_cuda_elementwise(KernelRegistry& r) {
#define HT_UNARY(op, ...) AddCudaKernel<ElementwiseKernel<1>>(r, #op, ir::kAnyDType);
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_APPROXIMABLE HT_UNARY
#define HT_BINARY(op, ...) AddCudaKernel<ElementwiseKernel<2>>(r, #op, ir::kAnyDType);
#define HT_SCALAR_BINARY HT_BINARY
#define HT_GRADIENT HT_BINARY
#define HT_APPROXIMABLE_GRADIENT HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_COMPARE_SWAPPED HT_BINARY
#define HT_LOGICAL HT_BINARY
#include "halftone/graph/ops/support/elementwise.def"
}

}  // namespace kernels
}  // namespace halftone
