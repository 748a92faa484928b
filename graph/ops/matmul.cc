// matmul: the product of (stacks of) matrices.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

// A matrix operand after its transpose flag: rows, columns, and the batch extents before them.
struct MatmulOperand {
  int64_t rows, columns;
  Shape batch;
};

MatmulOperand OperandOf(const Shape& shape, bool transpose) {
  const int rank = shape.rank();
  const int64_t outer = shape.dim(rank - 2), inner = shape.dim(rank - 1);
  return {transpose ? inner : outer, transpose ? outer : inner,
          Shape(shape.dims().subspan(0, rank - 2))};
}

Types InferMatmul(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "a", 2, kMaxRank));
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "b", 2, kMaxRank));
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, 1, "b", 0, "a"));
  const ir::ValueType &a_type = ctx.inputs[0], &b_type = ctx.inputs[1];
  const bool ta = ctx.attrs.GetBool("transpose_a"), tb = ctx.attrs.GetBool("transpose_b");
  const MatmulOperand a = OperandOf(a_type.shape, ta), b = OperandOf(b_type.shape, tb);
  if (a.columns != b.rows) {
    const std::string expected =
        tb ? Concat("[n, ", a.columns, "]") : Concat("[", a.columns, ", n]");
    return InvalidArgument(ctx.op, ": inner sizes differ: ", a_type.ToString(),
                           ta ? " transposed" : "", " x ", b_type.ToString(),
                           tb ? " transposed" : "", "; expected ", expected);
  }
  absl::StatusOr<Shape> batch = BroadcastShapes(a.batch, b.batch);
  if (!batch.ok()) {
    return InvalidArgument(ctx.op, ": batch extents differ: ", a_type.ToString(), " x ",
                           b_type.ToString(), "; expected equal extents or 1");
  }
  Ints dims(batch->dims().begin(), batch->dims().end());
  dims.push_back(a.rows);
  dims.push_back(b.columns);
  HT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  HT_ASSIGN_OR_RETURN(const DType dtype, OutDType(ctx, a_type.dtype));
  return std::vector<ir::ValueType>{{dtype, shape}};
}

ir::Cost MatmulCost(const ir::Node& node) {
  const Shape& a = node.input_type(0).shape;
  const int64_t inner = a.dim(node.attrs().GetBool("transpose_a") ? a.rank() - 2 : a.rank() - 1);
  const double outputs = static_cast<double>(node.output_type().num_elements());
  return {2 * outputs * static_cast<double>(inner), IoBytes(node)};
}

Expr Product(ir::Builder& builder, Expr a, Expr b, bool ta, bool tb) {
  return builder.Op("matmul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
}

// y = A B with A = a or a^T, B likewise: dA = dy B^T, dB = A^T dy, summed over the batch axes along
// which the operand was repeated.
void MatmulGradient(ir::GradContext& ctx) {
  const bool ta = ctx.attrs().GetBool("transpose_a"), tb = ctx.attrs().GetBool("transpose_b");
  const Expr a = ctx.in(0), b = ctx.in(1);
  const Expr dy = CastTo(ctx.dy(0), a.dtype());
  ir::Builder& build = ctx.b;
  if (ctx.need(0)) {
    const Expr da = ta ? Product(build, b, dy, tb, true) : Product(build, dy, b, false, !tb);
    ctx.set_dx(0, SumTo(da, a.shape()));
  }
  if (ctx.need(1)) {
    const Expr db = tb ? Product(build, dy, a, true, ta) : Product(build, a, dy, !ta, false);
    ctx.set_dx(1, SumTo(db, b.shape()));
  }
}

}  // namespace

void Register_matmul(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "matmul";
  r.doc =
      "y = A B over the last two axes, A = a or its transpose, B = b or its transpose. "
      "Shapes: A [..., m, k], B [..., k, n], y [..., m, n]; "
      "the leading axes broadcast as in NumPy. "
      "Products are summed in f32 (f64 for f64) and rounded once.";
  r.source = "https://numpy.org/doc/stable/reference/generated/numpy.matmul.html (rank 2 and more)";
  r.inputs = {{"a", ir::kFloats, "[..., m, k]; [..., k, m] if transpose_a"},
              {"b", ir::kFloats, "[..., k, n]; [..., n, k] if transpose_b; dtype of a"}};
  r.outputs = {{"y", "[..., m, n]"}};
  r.attrs = {{"transpose_a", ir::AttrType::kBool, false, "swap the last two axes of a"},
             {"transpose_b", ir::AttrType::kBool, false, "swap the last two axes of b"},
             OutAttr(),
             Tf32Attr(),
             WidenedAttr(),
             PackedAttr()};
  r.infer = InferMatmul;
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.reason = "matrix units multiply 16-bit operands and sum in f32";
  r.amp.same_dtype_inputs = {0, 1};
  r.amp.accumulates_in_f32 = true;
  r.amp.in_f8 = [](const ir::Node& node) {
    return ir::Attributes{{"transpose_a", node.attrs().GetBool("transpose_a")},
                          {"transpose_b", node.attrs().GetBool("transpose_b")}};
  };
  r.fusion = ir::FusionClass::kContraction;
  r.cost = MatmulCost;
  r.gradient = MatmulGradient;
  r.gradient_ops = {"matmul", "sum_to_shape"};
  AddOp(registry, std::move(r));
}

}  // namespace halftone::ops
