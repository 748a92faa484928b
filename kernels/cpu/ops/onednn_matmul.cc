// matmul and linear through dnnl::matmul. The transpose flags become strides; nothing is copied, but
// for weights of which the graph says `packed`.
// Source: oneDNN developer guide, "Matrix Multiplication".
#include <algorithm>
#include <optional>

#include "halftone/graph/ops/support/record.h"
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
struct Matrix {
  DType dtype;
  memory::dims dims, strides;

  memory::desc desc() const { return DescOf(dtype, dims, strides); }
  // Of rank 2.
  Matrix Rows(int64_t count) const { return {dtype, {count, dims[1]}, strides}; }
  size_t ByteOfRow(int64_t row) const {
    return static_cast<size_t>(row * strides[0]) * SizeOf(dtype);
  }
};
Matrix MatrixOf(const ir::ValueType& type, int rank, bool transpose) {
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
  return {type.dtype, dims, strides};
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

// y = a b, + bias if it is given; each as it lies.
struct ProductDescs {
  memory::desc a, b, y;
  std::optional<memory::desc> bias;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateProduct(const ProductDescs& p,
                                                      const memory::desc& b_asked) {
  SequenceBuilder sequence;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, sequence.Input(0, p.a)}};
  const int b = sequence.Input(1, p.b);
  dnnl::matmul::primitive_desc pd;
  if (p.bias.has_value()) {
    pd = Describe<dnnl::matmul>(Engine(), UserScratchpad(), p.a, b_asked, *p.bias, p.y);
    args.push_back({DNNL_ARG_BIAS, sequence.Input(2, *p.bias)});
  } else {
    pd = Describe<dnnl::matmul>(Engine(), UserScratchpad(), p.a, b_asked, p.y);
  }
  if (!pd) return Unimplemented("library has no matmul for these operands");
  const memory::desc weights = pd.weights_desc();
  args.push_back({DNNL_ARG_WEIGHTS,
                  b_asked == p.b ? sequence.ReadAs(b, weights) : sequence.ReadPacked(b, weights)});
  args.push_back({DNNL_ARG_DST, sequence.Output(0, p.y)});
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::matmul>(sequence, pd, args));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateProduct(const ir::Node& node, const ProductDescs& p) {
  if (ops::IsPacked(node)) {
    const memory::desc any = AnyDesc(node.input_type(1).dtype, DimsOf(p.b));
    auto packed = Guarded([&] { return CreateProduct(p, any); });
    if (packed.ok() || absl::IsResourceExhausted(packed.status())) return packed;
  }
  return CreateProduct(p, p.b);
}

// The gradient of a vocabulary's weights has more rows than the library blocks well: of 50,257 by 768, over
// 1,024 terms in bf16 on Zen 4, it makes 224 to 293 GFLOP/s at once and 350 to 370 so.
constexpr int64_t kRowsAtOnce = 4096, kMostPieces = 64;
constexpr int64_t kLeastTermsOfRows = 1 << 16;  // else a piece is too little work

// Rows of a piece, all but the last; none: not in pieces.
int64_t RowsOfPiece(const Matrix& a, const Matrix& b) {
  if (a.dims.size() != 2 || a.dims[0] <= 2 * kRowsAtOnce ||
      b.dims[0] * b.dims[1] < kLeastTermsOfRows) {
    return 0;
  }
  return std::max(kRowsAtOnce, (a.dims[0] + kMostPieces - 1) / kMostPieces);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateInPieces(const Matrix& a, const Matrix& b,
                                                       const Matrix& y, int64_t rows_of_piece) {
  SequenceBuilder sequence;
  const int weights = sequence.Input(1, b.desc());
  for (int64_t row = 0; row < a.dims[0]; row += rows_of_piece) {
    const int64_t rows = std::min(rows_of_piece, a.dims[0] - row);
    const memory::desc from = a.Rows(rows).desc(), to = y.Rows(rows).desc();
    const auto pd = Describe<dnnl::matmul>(Engine(), UserScratchpad(), from, b.desc(), to);
    if (!pd) return Unimplemented("library has no matmul for these operands");
    HT_RETURN_IF_ERROR(
        AddPrimitive<dnnl::matmul>(sequence, pd,
                                   {{DNNL_ARG_SRC, sequence.Input(0, from, a.ByteOfRow(row))},
                                    {DNNL_ARG_WEIGHTS, weights},
                                    {DNNL_ARG_DST, sequence.Output(0, to, y.ByteOfRow(row))}}));
  }
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const ir::Node& node) {
  const int rank = node.output_type().shape.rank();
  const Matrix a = MatrixOf(node.input_type(0), rank, node.attrs().GetBool("transpose_a"));
  const Matrix b = MatrixOf(node.input_type(1), rank, node.attrs().GetBool("transpose_b"));
  const Matrix y = MatrixOf(node.output_type(), rank, false);
  const int64_t rows_of_piece = ops::IsPacked(node) ? 0 : RowsOfPiece(a, b);
  if (rows_of_piece > 0) return CreateInPieces(a, b, y, rows_of_piece);
  return CreateProduct(node, {a.desc(), b.desc(), y.desc(), {}});
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLinear(const ir::Node& node) {
  const ir::ValueType& x = node.input_type(0);
  const ir::ValueType& w = node.input_type(1);
  const int64_t in = w.shape[1], out = w.shape[0], rows = x.num_elements() / in;
  ProductDescs p{PlainDesc(x.dtype, {rows, in}),
                 DescOf(w.dtype, {in, out}, {1, in}),
                 PlainDesc(node.output_type().dtype, {rows, out}),
                 {}};
  if (node.num_inputs() == 3) p.bias = PlainDesc(node.input_type(2).dtype, {1, out});
  return CreateProduct(node, p);
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
