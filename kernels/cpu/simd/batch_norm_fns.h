// Between the SIMD half (batch_norm.cc here) and the host half (ops/batch_norm.cc).
#pragma once

#include "halftone/core/dtype.h"
#include "halftone/kernels/cpu/simd/norm_fns.h"

namespace halftone::kernels {

// Channels that a block takes at a time.
inline constexpr int64_t kNormTile = 256;

// Arrays by channel; y = (x - mean) * scale + shift.
struct BatchNormApply {
  const float* mean_high;
  const float* mean_low;
  const float* scale;
  const float* shift;
};
// dx = scale * (dy - offset - (x - mean) * slope)
struct BatchNormGradApply {
  const float* mean;
  const float* scale;   // gamma * invstd
  const float* offset;  // mean of dy
  const float* slope;   // invstd^2 * mean of dy * (x - mean)
};

struct BatchNormFns {
  // Channels-last: over rows of `channels`, `stride` apart; one result per channel. Requires of the
  // first two: channels <= kNormTile.
  void (*moments)(const void* x, int64_t stride, int64_t rows, int64_t channels, Moments* moments);
  // The sums of dy and of dy * (x - mean).
  void (*grad_sums)(const void* x, const void* dy, int64_t stride, int64_t rows, int64_t channels,
                    const float* mean, double* dy_sums, double* dyx_sums);
  void (*apply)(const void* x, void* y, int64_t rows, int64_t channels, const BatchNormApply& p);
  void (*grad_apply)(const void* x, const void* dy, void* dx, int64_t rows, int64_t channels,
                     const BatchNormGradApply& p);
  // Plain: the n elements of one channel of one image.
  Moments (*row_moments)(const void* x, int64_t n);
  void (*row_grad_sums)(const void* x, const void* dy, int64_t n, float mean, double* dy_sum,
                        double* dyx_sum);
  void (*row_apply)(const void* x, void* y, int64_t n, const BatchNormApply& p);
  void (*row_grad_apply)(const void* x, const void* dy, void* dx, int64_t n,
                         const BatchNormGradApply& p);
};

// For the dispatch level that is set now.
BatchNormFns FindBatchNormFns(DType dtype);

}  // namespace halftone::kernels
