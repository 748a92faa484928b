// matmul and linear through dnnl::matmul. The transpose flags become strides; nothing is copied.
// Source: oneDNN developer guide, "Matrix Multiplication".
#include "halftone/kernels/cpu/onednn/f16.h"
#include "halftone/kernels/cpu/onednn/primitives.h"
#include "halftone/kernels/cpu/ops/long_product.h"
#include "halftone/kernels/cpu/support/widened.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace onednn {
namespace {

using dnnl::memory;

// A rank-`rank` view of a matrix operand: leading extents of 1 added, the last two axes swapped if
// `transpose`.
memory::desc MatrixDesc(const ir::ValueType& type, int rank, bool transpose) {
  memory::dims dims = DimsOf(type.shape);
  const auto row_major = type.shape.strides();
  memory::dims strides(row_major.begin(), row_major.end());
  if (transpose) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  const size_t missing = rank - dims.size();
  dims.insert(dims.begin(), missing, 1);
  strides.insert(strides.begin(), missing, type.num_elements());
  return DescOf(type.dtype, dims, strides);
}

// f16 goes to the library where that costs less than conversions around its f32 matmul.
absl::Status Supports(const ir::Node& node) {
  constexpr double kCostOfWidening = 1.25;
  if (node.input_type(0).dtype == DType::kF16 && F16MatmulCost() > kCostOfWidening) {
    return Unimplemented("the library multiplies f16 no faster than f32, or not at all");
  }
  if (IsLongProduct(node)) return Unimplemented("sums over so many rows go through f64");
  return PlainInputs(node);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const ir::Node& node) {
  const ir::ValueType& y = node.output_type();
  const int rank = y.shape.rank();
  SequenceBuilder sequence;
  const memory::desc a_desc =
      MatrixDesc(node.input_type(0), rank, node.attrs().GetBool("transpose_a"));
  const memory::desc b_desc =
      MatrixDesc(node.input_type(1), rank, node.attrs().GetBool("transpose_b"));
  const memory::desc y_desc = DescOf(y);
  const auto pd = Describe<dnnl::matmul>(Engine(), UserScratchpad(), a_desc, b_desc, y_desc);
  if (!pd) return Unimplemented("library has no matmul for these operands");
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::matmul>(sequence, pd,
                                                {{DNNL_ARG_SRC, sequence.Input(0, a_desc)},
                                                 {DNNL_ARG_WEIGHTS, sequence.Input(1, b_desc)},
                                                 {DNNL_ARG_DST, sequence.Output(0, y_desc)}}));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLinear(const ir::Node& node) {
  const ir::ValueType& x = node.input_type(0);
  const ir::ValueType& w = node.input_type(1);
  const int64_t in = w.shape[1], out = w.shape[0], rows = x.num_elements() / in;
  SequenceBuilder sequence;
  const memory::desc x_desc = PlainDesc(x.dtype, {rows, in});
  const memory::desc w_desc = DescOf(w.dtype, {in, out}, {1, in});
  const memory::desc y_desc = PlainDesc(node.output_type().dtype, {rows, out});
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, sequence.Input(0, x_desc)},
                                           {DNNL_ARG_WEIGHTS, sequence.Input(1, w_desc)},
                                           {DNNL_ARG_DST, sequence.Output(0, y_desc)}};
  dnnl::matmul::primitive_desc pd;
  if (node.num_inputs() == 3) {
    const memory::desc b_desc = PlainDesc(node.input_type(2).dtype, {1, out});
    pd = Describe<dnnl::matmul>(Engine(), UserScratchpad(), x_desc, w_desc, b_desc, y_desc);
    args.push_back({DNNL_ARG_BIAS, sequence.Input(2, b_desc)});
  } else {
    pd = Describe<dnnl::matmul>(Engine(), UserScratchpad(), x_desc, w_desc, y_desc);
  }
  if (!pd) return Unimplemented("library has no matmul for these operands");
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::matmul>(sequence, pd, args));
  return sequence.Build();
}

}  // namespace
}  // namespace onednn

void Register_cpu_onednn_matmul(KernelRegistry& r) {
  constexpr ir::DTypeSet kDTypes{DType::kF32, DType::kF16, DType::kBF16};
  onednn::AddCandidate(r, "matmul", onednn::Supports, onednn::CreateMatmul, kDTypes);
  onednn::AddCandidate(r, "linear", onednn::Supports, onednn::CreateLinear, kDTypes);
  AddWidened(r, "matmul");
  AddWidened(r, "linear");
}

}  // namespace halftone::kernels
