// The axes of an upsample2d or of its gradient, from the node.
#pragma once

#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/resampling.h"

namespace halftone::kernels {

// `axis`: 0 is the height, 1 the width. `image`: the shape of x. Requires: pixels.
inline ops::ResampledAxis ResampledAxisOf(const ir::Attributes& attrs, const Shape& image,
                                          int axis) {
  const std::vector<double>& scales = attrs.Get<std::vector<double>>("scales");
  ops::ResampledAxis resampled;
  resampled.input = image[2 + axis];
  resampled.output = attrs.GetInts("size")[static_cast<size_t>(axis)];
  resampled.nearest = attrs.GetString("mode") == "nearest";
  resampled.align_corners = !resampled.nearest && attrs.GetBool("align_corners");
  if (!scales.empty()) resampled.scale = scales[static_cast<size_t>(axis)];
  return resampled;
}

}  // namespace halftone::kernels
