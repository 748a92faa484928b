// conv2d_grad_bias and conv3d_grad_bias: sums over images and positions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// dy [n,channels,plane], dense, or [n,plane,channels] if channels_last.
struct ConvBiasShape {
  int64_t n, channels, plane;
  bool channels_last;
};

// Into how many parts, of which each gives one partial sum a channel, the work is cut: depends on
// shape and dtype alone.
int64_t ConvBiasParts(const ConvBiasShape& shape, DType dy);
// Bytes of the partial sums.
inline int64_t ConvBiasWorkspace(const ConvBiasShape& shape, DType dy) {
  return ConvBiasParts(shape, dy) * shape.channels * (dy == DType::kF64 ? 8 : 4);
}

// db [channels] of dy's dtype or, for 16-bit dy, f32. Sums in f32 (f64 for f64).
cudaError_t LaunchConvBias(const ConvBiasShape& shape, DType dy_dtype, DType db_dtype,
                           const void* dy, void* partial_sums, void* db, cudaStream_t stream);

}  // namespace halftone::cuda
