// Between the SIMD and the host half of simd_regression_loss.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

struct RegressionFns {
  double (*sum)(const void* a, const void* b, int64_t n);
  void (*each)(const void* a, const void* b, float* y, int64_t n);
};

}  // namespace halftone::kernels
