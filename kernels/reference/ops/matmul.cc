// matmul and linear.
#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

// y[m,n] = sum over k of a[m,k] b[k,n], each operand read through strides.
struct MatrixView {
  const double* data;
  int64_t row_stride, column_stride;
  double operator()(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

double DotProduct(const MatrixView& a, const MatrixView& b, int64_t row, int64_t column,
                  int64_t inner) {
  double sum = 0;
  for (int64_t k = 0; k < inner; ++k) sum += a(row, k) * b(k, column);
  return sum;
}

RefRun MakeMatmul(RefNode& node) {
  const bool ta = node.attrs.GetBool("transpose_a"), tb = node.attrs.GetBool("transpose_b");
  const Shape &a = node.in(0), &b = node.in(1), &y = node.out(0);
  const int64_t a_columns = a[a.rank() - 1], b_columns = b[b.rank() - 1];
  const int64_t rows = y[y.rank() - 2], columns = y[y.rank() - 1];
  const int64_t inner = ta ? a[a.rank() - 2] : a_columns;
  const int64_t a_size = rows * inner, b_size = inner * columns;
  const auto batch_of = [](const Shape& s) { return Shape(s.dims().subspan(0, s.rank() - 2)); };
  const Shape batch = batch_of(y);
  const IndexMap a_of = IndexMap::Broadcast(batch_of(a), batch);
  const IndexMap b_of = IndexMap::Broadcast(batch_of(b), batch);
  node.workspace_bytes = sizeof(double) * (a.num_elements() + b.num_elements());
  const int64_t batches = batch.num_elements();
  const int64_t a_elements = a.num_elements(), b_elements = b.num_elements();
  return [=](const RefCall& call) {
    double* const a_all = call.workspace<double>();
    double* const b_all = a_all + a_elements;
    LoadAll(call, 0, a_elements, a_all);
    LoadAll(call, 1, b_elements, b_all);
    for (int64_t i = 0; i < batches; ++i) {
      const MatrixView left{a_all + a_of(i) * a_size, ta ? 1 : a_columns, ta ? a_columns : 1};
      const MatrixView right{b_all + b_of(i) * b_size, tb ? 1 : b_columns, tb ? b_columns : 1};
      for (int64_t m = 0; m < rows; ++m) {
        for (int64_t n = 0; n < columns; ++n) {
          call.Store(0, (i * rows + m) * columns + n, DotProduct(left, right, m, n, inner));
        }
      }
    }
  };
}

RefRun MakeLinear(RefNode& node) {
  const int64_t columns = node.in(1)[0], inner = node.in(1)[1];
  const int64_t rows = columns == 0 ? 0 : node.out(0).num_elements() / columns;
  const bool has_bias = node.has_in(2);
  node.workspace_bytes = sizeof(double) * (rows + columns) * inner;
  return [=](const RefCall& call) {
    double* const x = call.workspace<double>();
    double* const w = x + rows * inner;
    LoadAll(call, 0, rows * inner, x);
    LoadAll(call, 1, columns * inner, w);
    const MatrixView left{x, inner, 1}, right{w, 1, inner};
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        const double bias = has_bias ? call.Load(2, n) : 0;
        call.Store(0, m * columns + n, DotProduct(left, right, m, n, inner) + bias);
      }
    }
  };
}

}  // namespace

void Register_reference_matmul(KernelRegistry& r) {
  AddReference(r, "matmul", ir::kFloats, MakeMatmul);
  AddReference(r, "linear", ir::kFloats, MakeLinear);
}

}  // namespace halftone::kernels
