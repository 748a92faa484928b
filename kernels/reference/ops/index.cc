// gather gather_grad embedding embedding_grad embedding_grad_rows. After a fault the results mean nothing; no index out
// of range is used.

#include <algorithm>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

// A tensor as [outer, rows, inner] and indices that pick rows.
struct Rows {
  int64_t outer = 1, rows = 1, inner = 1, picks = 1;
};

Rows RowsOf(const Shape& x, int axis, const Shape& idx) {
  Rows v;
  for (int i = 0; i < axis; ++i) v.outer *= x[i];
  v.rows = x[axis];
  for (int i = axis + 1; i < x.rank(); ++i) v.inner *= x[i];
  v.picks = idx.num_elements();
  return v;
}

RefRun PickRows(const Rows& v) {
  return [v](const RefCall& call) {
    for (int64_t p = 0; p < v.picks; ++p) {
      const int64_t row = call.LoadInt(1, p);
      if (!call.CheckIndex(p, v.rows)) return;
      for (int64_t o = 0; o < v.outer; ++o) {
        for (int64_t i = 0; i < v.inner; ++i) {
          call.Copy(0, (o * v.rows + row) * v.inner + i, 0, (o * v.picks + p) * v.inner + i);
        }
      }
    }
  };
}

// Sums in a workspace of doubles, on top of operand 2 if there is one; rows with index `ignored` take
// nothing.
RefRun AddRows(RefNode& node, const Rows& v, int64_t ignored) {
  const bool has_base = node.has_in(2);
  const int64_t size = v.outer * v.rows * v.inner;
  node.workspace_bytes = static_cast<size_t>(size) * sizeof(double);
  return [v, size, ignored, has_base](const RefCall& call) {
    double* sum = call.workspace<double>();
    for (int64_t i = 0; i < size; ++i) sum[i] = has_base ? call.Load(2, i) : 0;
    for (int64_t p = 0; p < v.picks; ++p) {
      const int64_t row = call.LoadInt(1, p);
      if (!call.CheckIndex(p, v.rows)) return;
      if (row == ignored) continue;
      for (int64_t o = 0; o < v.outer; ++o) {
        for (int64_t i = 0; i < v.inner; ++i) {
          sum[(o * v.rows + row) * v.inner + i] += call.Load(0, (o * v.picks + p) * v.inner + i);
        }
      }
    }
    for (int64_t i = 0; i < size; ++i) call.Store(0, i, sum[i]);
  };
}

// The workspace: the ids, ascending and each once, then the sums of their rows.
RefRun MakeEmbeddingGradRows(RefNode& node) {
  const int64_t rows = node.attrs.GetInt("rows"), ignored = node.attrs.GetInt("padding_idx");
  const int64_t picks = node.out(0)[0], width = node.out(0)[1];
  node.workspace_bytes = static_cast<size_t>(picks * (1 + width)) * sizeof(double);
  return [=](const RefCall& call) {
    int64_t* const ids = call.workspace<int64_t>();
    int64_t* end = ids;
    for (int64_t p = 0; p < picks; ++p) {
      if (!call.CheckIndex(p, rows)) return;
      if (call.LoadInt(1, p) != ignored) *end++ = call.LoadInt(1, p);
    }
    std::sort(ids, end);
    end = std::unique(ids, end);
    double* const sums = call.workspace<double>() + picks;
    std::fill_n(sums, picks * width, 0.0);
    for (int64_t p = 0; p < picks; ++p) {
      if (call.LoadInt(1, p) == ignored) continue;
      double* const sum = sums + (std::lower_bound(ids, end, call.LoadInt(1, p)) - ids) * width;
      for (int64_t i = 0; i < width; ++i) sum[i] += call.Load(0, p * width + i);
    }
    for (int64_t i = 0; i < picks * width; ++i) call.Store(0, i, sums[i]);
    for (int64_t k = 0; k < picks; ++k) call.StoreInt(1, k, k < end - ids ? ids[k] : -1);
  };
}

RefRun MakeGather(RefNode& node) {
  const int axis = ops::CheckedAxis(node.attrs.GetInt("axis"), node.in(0).rank());
  return PickRows(RowsOf(node.in(0), axis, node.in(1)));
}

RefRun MakeGatherGrad(RefNode& node) {
  const int axis = ops::CheckedAxis(node.attrs.GetInt("axis"), node.out(0).rank());
  return AddRows(node, RowsOf(node.out(0), axis, node.in(1)), -1);
}

}  // namespace

void Register_reference_index(KernelRegistry& r) {
  AddReference(r, "gather", ir::kAnyDType, MakeGather);
  AddReference(r, "gather_grad", ir::kFloats, MakeGatherGrad);
  AddReference(r, "embedding", ir::kFloats,
               [](RefNode& node) { return PickRows(RowsOf(node.in(0), 0, node.in(1))); });
  AddReference(r, "embedding_grad", ir::kFloats, [](RefNode& node) {
    return AddRows(node, RowsOf(node.out(0), 0, node.in(1)), node.attrs.GetInt("padding_idx"));
  });
  AddReference(r, "embedding_grad_rows", ir::kFloats, MakeEmbeddingGradRows);
}

}  // namespace halftone::kernels
