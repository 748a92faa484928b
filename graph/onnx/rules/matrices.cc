// Products of matrices.
#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// An operand of one axis is a row on the left and a column on the right; the axis added goes again.
Exprs ImportMatMul(NodeImport& n) {
  Expr a = n.in(0), b = n.in(1);
  if (!n.ok()) return {};
  const Ints left = n.shape(0), right = n.shape(1);
  if (left.size() > 1 && right.size() > 1) return {n.Result("matmul", {a, b})};
  if (left.size() == 1) a = Reshape(a, {1, left[0]});
  if (right.size() == 1) b = Reshape(b, {right[0], 1});
  const Expr y = n.b.Op("matmul", {a, b});
  Ints extents = ExtentsOf(y);
  if (right.size() == 1) extents.pop_back();
  if (left.size() == 1) extents.erase(extents.end() - (right.size() == 1 ? 1 : 2));
  return {Reshape(y, extents)};
}

// alpha A B + beta C
Exprs ImportGemm(NodeImport& n) {
  const double alpha = n.Float("alpha", 1), beta = n.Float("beta", 1);
  const bool ta = n.Bool("transA", false), tb = n.Bool("transB", false);
  const Expr a = n.in(0), b = n.in(1);
  if (!n.ok()) return {};
  if (n.shape(0).size() != 2 || n.shape(1).size() != 2) n.Fail("expected matrices");
  const bool is_linear = alpha == 1 && beta == 1 && !ta && tb && IsFloat(n.dtype(0));
  if (is_linear && !n.has(2)) return {n.Result("linear", {a, b})};
  if (is_linear && n.shape(2) == Ints{n.shape(1)[0]}) {
    return {n.Result("linear", {a, b, n.in(2)})};
  }
  Expr y = n.b.Op("matmul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
  if (alpha != 1) y = y * alpha;
  if (!n.has(2)) return {y};
  return {n.Result("add", {y, beta == 1 ? n.in(2) : n.in(2) * beta})};
}

// The last two axes of x, of this rank, swapped.
std::string Swapped(NodeExport& n, const std::string& x, int rank) {
  Ints perm = Range(0, rank);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return n.Add("Transpose", {x}, {{"perm", perm}});
}

void ExportMatmul(NodeExport& n) {
  const DType dtype = n.node.output_type().dtype;
  std::string a = n.InAs(0, dtype), b = n.InAs(1, dtype);
  if (n.attrs().GetBool("transpose_a")) a = Swapped(n, a, n.shape(0).rank());
  if (n.attrs().GetBool("transpose_b")) b = Swapped(n, b, n.shape(1).rank());
  n.Give("MatMul", {a, b});
}

void ExportLinear(NodeExport& n) {
  if (n.shape(0).rank() == 2) {
    Names operands = {n.in(0), n.in(1)};
    if (n.num_inputs() > 2) operands.push_back(n.InAs(2, n.dtype()));
    n.Give("Gemm", operands, {{"transB", int64_t{1}}});
    return;
  }
  const Names operands = {n.in(0), Swapped(n, n.in(1), 2)};
  if (n.num_inputs() == 2) {
    n.Give("MatMul", operands);
    return;
  }
  n.Give("Add", {n.Add("MatMul", operands), n.InAs(2, n.dtype())});
}

}  // namespace

void AddMatrixRules(Rules& rules) {
  rules.Import("MatMul", "matmul", ImportMatMul, "whole numbers");
  rules.Export("matmul", "MatMul, Transpose", ExportMatmul);
  rules.Import("Gemm", "linear, or matmul, mul and add", ImportGemm, "whole numbers");
  rules.Export("linear", "Gemm, or Transpose, MatMul and Add", ExportLinear);
}

}  // namespace halftone::onnx
