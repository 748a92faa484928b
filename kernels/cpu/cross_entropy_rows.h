// Between the SIMD and the host half of hwy_cross_entropy.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

struct RowSums {
  float max = 0;
  double sum_exp = 0;  // of exp(x - max)
  double sum = 0;      // of x, for label smoothing
};

struct RowFns {
  RowSums (*sums)(const void* row, int64_t classes);
  void (*grad)(const void* row, void* grad, int64_t classes, float lse, float scale, float smooth);
};

}  // namespace halftone::kernels
