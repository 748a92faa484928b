// Between the SIMD and the host halves of the norms.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// Of n values: their mean, and the sum of squared deviations from it.
struct Moments {
  double mean = 0, m2 = 0;
};

// A mean of values of a tensor, in two floats: x - high is exact for x near the mean, so that a
// small deviation from a large mean keeps its digits.
struct SplitMean {
  float high = 0, low = 0;
  SplitMean() = default;
  explicit SplitMean(double mean)
      : high(static_cast<float>(mean)), low(static_cast<float>(mean - high)) {}
};

struct LayerNormFns {
  Moments (*moments)(const void* x, int64_t n);
  // y = (x - mean) * rstd * gamma + beta
  void (*normalize)(const void* x, SplitMean mean, float rstd, const float* gamma,
                    const float* beta, void* y, int64_t n);
  // dx of one row; adds dy * xhat to dgamma and dy to dbeta.
  void (*grad)(const void* x, const void* dy, float mean, float rstd, const float* gamma, void* dx,
               float* dgamma, float* dbeta, int64_t n);
};

}  // namespace halftone::kernels
