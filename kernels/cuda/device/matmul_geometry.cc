#include "halftone/kernels/cuda/device/matmul_geometry.h"

namespace halftone::cuda {
namespace {

using BatchAxis = MatmulGeometry::BatchAxis;

// Strides in elements of an operand's batch axes, aligned at the last one to the `rank` axes of y;
// 0 where the operand is repeated.
std::vector<int64_t> BatchStrides(const Shape& shape, int rank) {
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = shape[shape.rank() - 1] * shape[shape.rank() - 2];
  for (int i = shape.rank() - 3, out = rank - 1; i >= 0; --i, --out) {
    if (shape[i] != 1) strides[out] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Axes of extent 1 left out, neighbours joined along which both operands go on evenly.
std::vector<BatchAxis> Joined(const std::vector<BatchAxis>& axes) {
  std::vector<BatchAxis> joined;
  for (const BatchAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!joined.empty()) {
      BatchAxis& outer = joined.back();
      if (outer.a_stride == axis.a_stride * axis.extent &&
          outer.b_stride == axis.b_stride * axis.extent) {
        outer = {outer.extent * axis.extent, axis.a_stride, axis.b_stride};
        continue;
      }
    }
    joined.push_back(axis);
  }
  return joined;
}

void JoinRows(MatmulGeometry& g) {
  while (!g.batch.empty() && !g.transpose_a && g.batch.back().b_stride == 0 &&
         g.batch.back().a_stride == g.m * g.k) {
    g.m *= g.batch.back().extent;
    g.batch.pop_back();
  }
}

}  // namespace

int64_t MatmulGeometry::batch_count() const {
  int64_t count = 1;
  for (const BatchAxis& axis : batch) count *= axis.extent;
  return count;
}

MatmulGeometry GeometryOf(const ir::Node& node) {
  const Shape &a = node.input_type(0).shape, &b = node.input_type(1).shape,
              &y = node.output_type().shape;
  MatmulGeometry g{};
  g.operand_dtype = node.input_type(0).dtype;
  g.output_dtype = node.output_type().dtype;
  g.b_dtype = node.input_type(1).dtype;
  g.tf32 = node.attrs().Has("tf32") && node.attrs().GetBool("tf32");
  if (IsF8(g.operand_dtype) && node.num_inputs() > 4) {
    g.has_bias = true;
    g.bias_dtype = node.input_type(4).dtype;
  }
  if (node.op().name == "linear") {
    g.n = b[0];
    g.k = b[1];
    g.m = 1;
    for (int i = 0; i + 1 < a.rank(); ++i) g.m *= a[i];
    g.transpose_b = true;
    g.has_bias = node.num_inputs() > 2;
    if (g.has_bias) g.bias_dtype = node.input_type(2).dtype;
    return g;
  }
  g.transpose_a = node.attrs().GetBool("transpose_a");
  g.transpose_b = node.attrs().GetBool("transpose_b");
  g.m = y[y.rank() - 2];
  g.n = y[y.rank() - 1];
  g.k = a[g.transpose_a ? a.rank() - 2 : a.rank() - 1];
  const int batch_rank = y.rank() - 2;
  const std::vector<int64_t> a_strides = BatchStrides(a, batch_rank);
  const std::vector<int64_t> b_strides = BatchStrides(b, batch_rank);
  std::vector<BatchAxis> axes;
  for (int i = 0; i < batch_rank; ++i) axes.push_back({y[i], a_strides[i], b_strides[i]});
  g.batch = Joined(axes);
  JoinRows(g);
  return g;
}

}  // namespace halftone::cuda
