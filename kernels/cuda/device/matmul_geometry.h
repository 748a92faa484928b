// matmul, linear and f8_matmul as products of row-major matrices over a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::cuda {

// y = A B, plus bias along the rows of y. A [m, k] is stored as [m, k], or [k, m] if transpose_a; B
// [k, n] as [k, n], or [n, k] if transpose_b; y as [m, n]. The matrices of y lie one after the
// other, in the order of the batch.
struct MatmulGeometry {
  struct BatchAxis {
    int64_t extent;              // at least 2
    int64_t a_stride, b_stride;  // in elements; 0: one matrix serves all
    friend bool operator==(const BatchAxis&, const BatchAxis&) = default;
  };

  int64_t m, n, k;
  bool transpose_a, transpose_b;
  std::vector<BatchAxis> batch;  // outermost first; as few axes as describe it
  DType operand_dtype, output_dtype;
  DType b_dtype;          // operand_dtype, or the other one of 8 bits
  bool has_bias = false;  // [n]
  DType bias_dtype = DType::kF32;
  bool tf32 = false;  // f32 operands may be rounded to it

  int64_t batch_count() const;
  // Whether y has no elements, or is sums of no products.
  bool is_trivial() const { return m == 0 || n == 0 || k == 0 || batch_count() == 0; }
};

// The geometry of a matmul, linear or f8_matmul node. Rows are joined where they lie alike: a stack of
// matrices times one shared matrix is one product.
MatmulGeometry GeometryOf(const ir::Node& node);

}  // namespace halftone::cuda
