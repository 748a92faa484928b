// embedding: rows of a table by id, and its gradient, whole or the rows alone that are not 0.

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;

Types InferEmbedding(const ir::InferContext& ctx) {
  const ir::ValueType& table = ctx.inputs[0];
  if (table.shape.rank() != 2) return OpError(ctx, "table is ", table, "; expected rank 2");
  std::vector<int64_t> dims = ToInts(ctx.inputs[1].shape);
  dims.push_back(table.shape[1]);
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, dims));
  return OneType(table.dtype, std::move(shape));
}

// The width of a row of dy.
absl::StatusOr<int64_t> CheckGradients(const ir::InferContext& ctx) {
  const ir::ValueType& dy = ctx.inputs[0];
  const Shape& idx = ctx.inputs[1].shape;
  const int64_t rows = ctx.attrs.GetInt("rows");
  if (rows < 0) return OpError(ctx, "rows ", rows, "; expected at least 0");
  const bool fits =
      dy.shape.rank() == idx.rank() + 1 && dy.shape.dims().subspan(0, idx.rank()) == idx.dims();
  if (!fits) {
    return OpError(ctx, "dy is ", dy, ", idx ", idx, "; expected idx's extents and one more in dy");
  }
  return dy.shape[idx.rank()];
}

Types InferEmbeddingGrad(const ir::InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const int64_t width, CheckGradients(ctx));
  HT_ASSIGN_OR_RETURN(const DType out, OutDType(ctx, ctx.inputs[0].dtype));
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, {ctx.attrs.GetInt("rows"), width}));
  if (ctx.inputs.size() > 2)
    HT_RETURN_IF_ERROR(CheckType(ctx, 2, "base", out, shape, "the result"));
  return OneType(out, std::move(shape));
}

Types InferEmbeddingGradRows(const ir::InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const int64_t width, CheckGradients(ctx));
  HT_ASSIGN_OR_RETURN(const DType out, OutDType(ctx, ctx.inputs[0].dtype));
  const int64_t ids = ctx.inputs[1].num_elements();
  HT_ASSIGN_OR_RETURN(Shape rows, MakeShape(ctx, {ids, width}));
  return std::vector<ir::ValueType>{{out, std::move(rows)}, {DType::kI64, Shape{ids}}};
}

// Rows with the padding id contribute nothing.
std::vector<Expr> DecomposeGrad(ir::Builder& b, const std::vector<Expr>& in,
                                const ir::Attributes& attrs) {
  Expr dy = in[0];
  const Expr idx = in[1];
  if (!attrs.GetString("out").empty()) dy = CastTo(dy, DType::kF32);
  const int64_t padding = attrs.GetInt("padding_idx");
  if (padding >= 0) {
    std::vector<int64_t> column = ToInts(idx.shape());
    column.push_back(1);
    const Expr is_padding = Equal(idx, Number(idx, static_cast<double>(padding)));
    dy = Where(ReshapeTo(is_padding, Shape(column)), Number(dy, 0), dy);
  }
  const Expr sums =
      b.Op("gather_grad", {dy, idx}, {{"axis", int64_t{0}}, {"dim", attrs.GetInt("rows")}});
  return {in.size() > 2 ? in[2] + sums : sums};
}

}  // namespace

void Register_embedding(ir::OpRegistry& r) {
  const ir::AttrSpec padding = Optional(
      "padding_idx", int64_t{-1}, "id whose row gets no gradient (its value is read); -1: none");
  const ir::AttrSpec sparse =
      Optional("sparse", false,
               "whether an optimizer may take the rows alone that are not 0 (embedding_grad_rows)");
  ir::OpRecord embedding;
  embedding.name = "embedding";
  embedding.doc =
      "y[i..., :] = table[idx[i...], :]; table [V, D]. Id out of 0..V-1: a run-time fault. "
      "Gradient: embedding_grad";
  embedding.source = "PyTorch: embedding";
  embedding.inputs = {{"table", ir::kFloats, "[V, D]"}, {"idx", ir::kIndices, "any shape"}};
  embedding.outputs = {{"y", "idx's shape, then D"}};
  embedding.attrs = {padding, sparse};
  embedding.amp = Clear("the rows are cast, not the table: a table is larger than what is read");
  embedding.amp.keep_f32_inputs = {0};
  embedding.amp.cast_output_only = true;
  embedding.cost = FlopsPerOutput(0);
  embedding.index_extent = [](const ir::Node& node) { return node.input_type(0).shape[0]; };
  embedding.infer = InferEmbedding;
  embedding.gradient = [](ir::GradContext& c) {
    c.set_dx(0, c.b.Op("embedding_grad", {c.dy(0), c.in(1)},
                       {{"rows", c.in(0).shape()[0]},
                        {"padding_idx", c.attrs().GetInt("padding_idx")},
                        {"sparse", c.attrs().GetBool("sparse")}}));
  };
  embedding.gradient_ops = {"embedding_grad"};
  embedding.decompose = [](ir::Builder& b, const std::vector<Expr>& in, const ir::Attributes&) {
    return std::vector<Expr>{b.Op("gather", {in[0], in[1]}, {{"axis", int64_t{0}}})};
  };
  AddOp(r, std::move(embedding));

  ir::OpRecord grad;
  grad.name = "embedding_grad";
  grad.doc =
      "dtable[k, :] = base[k, :] + sum of dy[i..., :] over idx[i...] = k, no sum where k = padding_idx; "
      "without base the sum. Accumulates in f32, f64 in f64";
  grad.source = "PyTorch: embedding_dense_backward";
  grad.inputs = {{"dy", ir::kFloats, "idx's shape, then D"},
                 {"idx", ir::kIndices, ""},
                 {"base", ir::kFloats, "[rows, D]: what else the gradient is the sum of",
                  /*optional=*/true}};
  grad.outputs = {{"dtable", "[rows, D]"}};
  grad.in_place = {{2, 0}};
  grad.attrs = {Required("rows", ir::AttrType::kInt, "V"), padding, sparse, OutAttr()};
  grad.amp = Clear("follows embedding; adds in f32");
  grad.amp.accumulates_in_f32 = true;
  grad.amp.keep_f32_inputs = {2};
  grad.cost = FlopsPerInput(1);
  grad.index_extent = ExtentInAttr("rows");
  grad.infer = InferEmbeddingGrad;
  grad.decompose = DecomposeGrad;
  grad.rows_op = "embedding_grad_rows";
  AddOp(r, std::move(grad));

  ir::OpRecord rows;
  rows.name = "embedding_grad_rows";
  rows.doc =
      "The rows of embedding_grad that are not 0: ids = the distinct idx in ascending order without "
      "padding_idx, then -1; drows[k, :] = sum of dy[i..., :] over idx[i...] = ids[k], 0 where "
      "ids[k] = -1. N is the number of idx. Accumulates in f32, f64 in f64";
  rows.source = "PyTorch: embedding with sparse=True, and Tensor.coalesce of its gradient";
  rows.inputs = {{"dy", ir::kFloats, "idx's shape, then D"}, {"idx", ir::kIndices, ""}};
  rows.outputs = {{"drows", "[N, D]"}, {"ids", "[N] i64"}};
  rows.attrs = {Required("rows", ir::AttrType::kInt, "V"), padding, OutAttr()};
  rows.amp = Clear("follows embedding; adds in f32");
  rows.amp.accumulates_in_f32 = true;
  rows.cost = FlopsPerInput(1);
  rows.index_extent = ExtentInAttr("rows");
  rows.no_gradient = "stands in for embedding_grad once everything is differentiated";
  rows.infer = InferEmbeddingGradRows;
  AddOp(r, std::move(rows));
}

}  // namespace halftone::ops
