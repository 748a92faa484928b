// max_pool2d, avg_pool2d and their gradients on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// Elements of a plane (below), of x and of y, are at most this many: positions and threads are
// numbers of 32 bits.
inline constexpr int64_t kMaxPoolPlane = int64_t{1} << 30;

// Output position o, offset k read input o * stride - padding + k * dilation.
struct PoolAxis {
  int32_t input, output, kernel, stride, padding, dilation;
};

// x [planes, h.input, w.input, channels], y [planes, h.output, w.output, channels]: planes are
// images in channels-last tensors, and images times channels, each of 1 channel, in plain ones.
struct PoolShape {
  int64_t planes, channels;
  PoolAxis h, w;
};

// x, y, dy and dx are of `dtype`; index (offset in the window) is u8 or, with wide_index, i32.
// count_include_pad: divisors count padding. Sums in f32 (f64 for f64).
cudaError_t LaunchMaxPool(const PoolShape& shape, DType dtype, bool wide_index, const void* x,
                          void* y, void* index, cudaStream_t stream);
cudaError_t LaunchMaxPoolGrad(const PoolShape& shape, DType dtype, bool wide_index, const void* dy,
                              const void* index, void* dx, cudaStream_t stream);
cudaError_t LaunchAvgPool(const PoolShape& shape, DType dtype, bool count_include_pad,
                          const void* x, void* y, cudaStream_t stream);
cudaError_t LaunchAvgPoolGrad(const PoolShape& shape, DType dtype, bool count_include_pad,
                              const void* dy, void* dx, cudaStream_t stream);

}  // namespace halftone::cuda
