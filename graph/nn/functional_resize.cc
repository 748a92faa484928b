#include <cmath>

#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"

namespace halftone::nn {

Value interpolate(const Value& x, const InterpolateOptions& options, Loc loc) {
  if (!x.valid()) return {};
  if (x.rank() != 4) {
    return Fail(loc, InvalidArgument("interpolate: x is ", Name(x.dtype()), x.shape(),
                                     "; expected [N,C,H,W]"));
  }
  if (options.size.has_value() == options.scale_factor.has_value()) {
    return Fail(loc, InvalidArgument("interpolate: ", options.size ? "both" : "none",
                                     " of size and scale_factor; expected one"));
  }
  ir::Attributes attrs = {{"mode", options.mode}, {"align_corners", options.align_corners}};
  if (options.size) {
    attrs.Set("size", options.size->ints());
    return Op("upsample2d", {x}, std::move(attrs), loc);
  }
  std::vector<int64_t> size;
  const std::vector<double> scales = {options.scale_factor->h, options.scale_factor->w};
  for (int axis : {0, 1}) {
    const double extent =
        std::floor(static_cast<double>(x.shape()[2 + axis]) * scales[static_cast<size_t>(axis)]);
    if (!(extent >= 1 && extent <= static_cast<double>(kMaxElements))) {
      return Fail(
          loc, InvalidArgument("interpolate: scale_factor is ", scales[0], ", ", scales[1], " for ",
                               Name(x.dtype()), x.shape(), "; expected a result of 1.. pixels"));
    }
    size.push_back(static_cast<int64_t>(extent));
  }
  attrs.Set("size", size);
  attrs.Set("scales", scales);
  return Op("upsample2d", {x}, std::move(attrs), loc);
}

}  // namespace halftone::nn
