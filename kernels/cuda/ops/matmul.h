// matmul and linear by our own kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

enum class MatmulDType : uint8_t { kF32, kF16, kBF16, kF64 };
// Of a float dtype.
inline MatmulDType MatmulDTypeOf(DType dtype) {
  return dtype == DType::kF16    ? MatmulDType::kF16
         : dtype == DType::kBF16 ? MatmulDType::kBF16
         : dtype == DType::kF64  ? MatmulDType::kF64
                                 : MatmulDType::kF32;
}

struct MatmulBatchAxis {
  int64_t extent, a_stride, b_stride;  // strides in elements
};
inline constexpr int kMaxMatmulBatchAxes = 6;

// Element (i, k) of A is at i * a_row_stride + k * a_column_stride, element (k, j) of B likewise;
// the outputs are dense.
struct MatmulParams {
  int64_t m, n, k;
  int64_t a_row_stride, a_column_stride, b_row_stride, b_column_stride;
  int64_t batch_count;
  int32_t batch_axes;  // outermost first
  MatmulBatchAxis batch[kMaxMatmulBatchAxes];
  const void *a, *b;
  void* y;
  const void* bias;  // [n] or null, of the operands' dtype, or f32 if bias_is_f32
  bool bias_is_f32;
};

// 16-bit operands give outputs of their own dtype or f32, others of their own. Does nothing for an
// empty output.
cudaError_t LaunchMatmul(const MatmulParams& params, MatmulDType operands, MatmulDType output,
                         cudaStream_t stream);

}  // namespace halftone::cuda
