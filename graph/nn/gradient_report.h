// GradientReport: how the gradients of a step fit f16 at a loss scale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halftone::nn {

// The gradient of one parameter, computed in f32 throughout. Shares are of the elements that are
// not 0 in f32, 0 where there are none: a gradient that is 0 by itself loses nothing.
struct GradientFit {
  std::string parameter;  // name in the graph
  double largest = 0;     // finite magnitude, unscaled
  int64_t elements = 0;
  int64_t zeros = 0;       // in f32
  int64_t non_finite = 0;  // in f32
  // Multiplied by the scale they are 0 in f16: 2^-25 and less in magnitude.
  double vanishing_share = 0;
  // Multiplied by the scale they are not, and below 2^-14, where f16 has fewer digits.
  double subnormal_share = 0;
};

struct GradientReport {
  double scale = 1;  // of the scaler
  // The largest power of two at which every f16 value of the backward pass, gradients of
  // activations too, stays within half of f16's range: one growth of the scale by 2 does not
  // overflow. Nothing where no f16 value carries the scale, or all are 0, or none is finite at any
  // scale.
  std::optional<double> suggested_scale;
  // Of the parameters with a gradient of this scaler, optimizer by optimizer.
  std::vector<GradientFit> parameters;
};

}  // namespace halftone::nn
