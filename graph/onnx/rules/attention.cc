// Scaled dot-product attention.
#include <cmath>
#include <limits>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// [B, S, heads E] as [B, heads, S, E]; of rank 4 as it is.
Expr Heads(NodeImport& n, Expr x, int64_t heads) {
  const Ints extents = ExtentsOf(x);
  if (extents.size() != 3) return x;
  if (heads < 1 || extents[2] % heads != 0) {
    n.Fail(heads, " heads do not divide ", extents[2], " columns");
    return x;
  }
  return Transpose(Reshape(x, {extents[0], extents[1], heads, extents[2] / heads}), {0, 2, 1, 3});
}

// Row i sees the columns up to i + offset.
Expr CausalMask(NodeImport& n, int64_t rows, int64_t columns, int64_t offset) {
  const Expr row = Counting(n, rows, DType::kI64, 1), column = Counting(n, columns, DType::kI64);
  return ops::LessEqual(column, row + n.b.Scalar(DType::kI64, static_cast<double>(offset)));
}

Exprs ImportAttention(NodeImport& n) {
  const bool causal = n.Bool("is_causal", false);
  const int64_t q_heads = n.Int("q_num_heads", 0), kv_heads = n.Int("kv_num_heads", 0);
  if (n.Float("softcap", 0) != 0) n.Fail("softcap is not covered");
  n.Ignore("softmax_precision");  // f32 or wider
  n.Ignore("qk_matmul_output_mode");
  if (n.has(6)) n.Fail("nonpad_kv_seqlen is not covered");
  const bool flat = n.shape(0).size() == 3;
  const Expr q = Heads(n, n.in(0), q_heads);
  Expr k = Heads(n, n.in(1), kv_heads), v = Heads(n, n.in(2), kv_heads);
  int64_t past = 0;
  if (n.has(4)) {
    past = ExtentsOf(n.in(4)).size() == 4 ? ExtentsOf(n.in(4))[2] : 0;
    k = Joined({n.in(4), k}, 2);
    v = Joined({n.in(5), v}, 2);
  }
  const Ints qs = ExtentsOf(q), ks = ExtentsOf(k);
  if (n.ok() && (qs.size() != 4 || ks.size() != 4)) n.Fail("expected rank 3 or 4");
  if (!n.ok() || !q.valid() || !k.valid()) return {};
  const double scale = n.Float("scale", 1 / std::sqrt(static_cast<double>(qs[3])));
  Exprs operands = {q, k, v};
  if (n.has(3)) {
    const Expr mask = n.in(3);
    operands.push_back(mask.dtype() == DType::kBool
                           ? mask
                           : ops::CastTo(mask, IsLow(q.dtype()) ? DType::kF32 : q.dtype()));
  }
  if (causal && past > 0) {
    const Expr sees = CausalMask(n, qs[2], ks[2], past);
    if (operands.size() == 3) {
      operands.push_back(sees);
    } else if (DTypeOf(operands[3]) == DType::kBool) {
      operands[3] = ops::And(operands[3], sees);
    } else {
      const double nothing = -std::numeric_limits<double>::infinity();
      operands[3] = ops::Where(sees, operands[3], n.b.ScalarLike(operands[3], nothing));
    }
  }
  Expr y = n.b.Op("scaled_dot_product_attention", operands,
                  {{"scale", scale}, {"is_causal", causal && past == 0}});
  if (flat) {
    const Ints ys = ExtentsOf(y);
    y = Reshape(Transpose(y, {0, 2, 1, 3}), {ys[0], ys[2], ys[1] * ys[3]});
  }
  return {y, k, v};
}

// Heads of key or value, each repeated for the heads of query that it serves.
std::string RepeatedHeads(NodeExport& n, int port) {
  const Ints q = ops::ToInts(n.shape(0));
  Ints x = ops::ToInts(n.shape(port));
  const size_t rank = x.size();
  if (rank < 3 || x[rank - 3] == q[rank - 3]) return n.in(port);
  const int64_t heads = x[rank - 3], group = q[rank - 3] / heads;
  const int64_t size = x[rank - 2] * x[rank - 1];
  const int64_t outer = Product({x.begin(), x.end() - 3});
  const std::string split = n.Add("Reshape", {n.in(port), n.Ints({outer, heads, 1, size})});
  const std::string wide = n.Add("Expand", {split, n.Ints({outer, heads, group, size})});
  x[rank - 3] = q[rank - 3];
  return n.Add("Reshape", {wide, n.Ints(x)});
}

// softmax(scale q k^T + mask) v, with zeros for rows that see no key.
void ExportAttention(NodeExport& n) {
  if (n.attrs().GetFloat("dropout_p") != 0) {
    n.Fail("dropout draws random numbers; expected a graph of evaluation");
    return;
  }
  const int rank = n.shape(0).rank();
  Ints perm = Range(0, rank);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const std::string key = n.Add("Transpose", {RepeatedHeads(n, 1)}, {{"perm", perm}});
  const std::string query = n.Add("Mul", {n.in(0), n.Number(n.attrs().GetFloat("scale"))});
  std::string scores = n.Add("MatMul", {query, key});
  const bool masked = n.num_inputs() > 3, causal = n.attrs().GetBool("is_causal");
  const std::string nothing =
      masked || causal ? n.Number(-std::numeric_limits<double>::infinity()) : "";
  if (causal) {
    const int64_t rows = n.shape(0)[rank - 2], columns = n.shape(1)[rank - 2];
    Tensor sees = Tensor::Empty(DType::kBool, Shape{rows, columns});
    for (int64_t i = 0; i < rows * columns; ++i) sees.set(i, i % columns <= i / columns ? 1 : 0);
    scores = n.Add("Where", {n.Constant(sees), scores, nothing});
  }
  if (masked && n.type(3).dtype == DType::kBool) {
    scores = n.Add("Where", {n.in(3), scores, nothing});
  } else if (masked) {
    scores = n.Add("Add", {scores, n.InAs(3, n.dtype())});
  }
  std::string weights = n.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (masked) {
    const std::string largest =
        n.Add("ReduceMax", {scores}, {{"axes", Ints{-1}}, {"keepdims", int64_t{1}}});
    const std::string blind = n.Add("Equal", {largest, nothing});
    weights = n.Add("Where", {blind, n.Number(0), weights});
  }
  n.Give("MatMul", {weights, RepeatedHeads(n, 2)});
}

}  // namespace

void AddAttentionRules(Rules& rules) {
  rules.Import("Attention", "scaled_dot_product_attention", ImportAttention,
               "softcap, nonpad_kv_seqlen, the output qk_matmul_output");
  rules.Export("scaled_dot_product_attention", "Transpose, Mul, MatMul, Softmax, MatMul",
               ExportAttention);
}

}  // namespace halftone::onnx
