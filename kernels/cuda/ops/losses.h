// cross_entropy, its gradient, mse_loss and l1_loss on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

// Losses that are to be added, and room for sums of kLossSumPart of them each.
inline constexpr int64_t kLossSumPart = 4096;
inline int64_t LossSumRoom(int64_t count) {
  return count + (count + kLossSumPart - 1) / kLossSumPart;
}

enum class LossReduction : uint8_t { kNone, kSum, kMean };

// logits: [outer, classes, inner] of `dtype`; a line is one target.
struct CrossEntropyShape {
  DType dtype = DType::kF32;
  int64_t outer = 1, classes = 1, inner = 1;
  bool wide_targets = true;  // i64, else i32
  double smoothing = 0;
  int64_t ignore_index = 0;
  LossReduction reduction = LossReduction::kMean;
  int64_t lines() const { return outer * inner; }
};

// stats (of each line the largest logit; then of each the logarithm of the sum of exponentials
// relative to it), loss and dloss: f32, or f64 for f64 logits. `counted` has how many targets
// count, as LaunchIndexCheck gives it. A target out of range counts like an ignored one.
struct CrossEntropyArrays {
  const void *logits, *targets;
  const int64_t* counted;
  void *loss, *stats;
  double* line_losses;  // LossSumRoom(lines); unless reduction is none
};
struct CrossEntropyGradArrays {
  const void *logits, *targets, *stats, *dloss;
  const int64_t* counted;
  void* dlogits;  // may be the logits
};
cudaError_t LaunchCrossEntropy(const CrossEntropyShape& shape, const CrossEntropyArrays& arrays,
                               cudaStream_t stream);
cudaError_t LaunchCrossEntropyGrad(const CrossEntropyShape& shape,
                                   const CrossEntropyGradArrays& arrays, cudaStream_t stream);

// (a - b)^2 or |a - b|, each or reduced. `partials`: RegressionPartials(count) values.
struct RegressionLoss {
  DType dtype = DType::kF32;
  bool squared = true;
  LossReduction reduction = LossReduction::kMean;
  int64_t count = 0;
};
int64_t RegressionPartials(int64_t count);
cudaError_t LaunchRegressionLoss(const RegressionLoss& loss, const void* a, const void* b,
                                 void* result, double* partials, cudaStream_t stream);

}  // namespace halftone::cuda
