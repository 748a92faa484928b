// Where the axes of `upsample2d` read: for inference and kernels of all devices.
#pragma once

#include <cmath>
#include <cstdint>

#include "halftone/core/host_device.h"

namespace halftone::ops {

// An output position reads `low` with 1 - weight and `high` with weight.
struct Tap {
  int64_t low, high;
  double weight;

  // The share of position i.
  HT_HOST_DEVICE double of(int64_t i) const {
    return (low == i ? 1 - weight : 0) + (high == i ? weight : 0);
  }
};

struct ResampledAxis {
  int64_t input = 0, output = 0;  // extents, above 0
  bool nearest = false, align_corners = false;
  double scale = 0;  // output over input as the user gave it; 0: that of the extents

  // Input positions that an output position advances by.
  HT_HOST_DEVICE double step() const {
    if (align_corners) {
      return output > 1 ? static_cast<double>(input - 1) / static_cast<double>(output - 1) : 0;
    }
    return scale > 0 ? 1 / scale : static_cast<double>(input) / static_cast<double>(output);
  }

  // `step`: step().
  HT_HOST_DEVICE Tap at(int64_t o, double step) const {
    const int64_t last = input - 1;
    if (nearest) {
      // In f32 beside a scale, as in PyTorch; exactly beside extents, where the product of f32 may
      // fall just below a whole number.
      if (scale > 0) {
        const float from = floorf(static_cast<float>(o) * static_cast<float>(step));
        const int64_t place = from < static_cast<float>(last) ? static_cast<int64_t>(from) : last;
        return {place, place, 0};
      }
      // Of products below 2^52 the quotient rounds to no whole number above it.
      const auto from =
          static_cast<int64_t>(static_cast<double>(o * input) / static_cast<double>(output));
      return {from, from, 0};
    }
    double position =
        align_corners ? static_cast<double>(o) * step : (static_cast<double>(o) + 0.5) * step - 0.5;
    if (position < 0) position = 0;
    if (!(position < static_cast<double>(last))) return {last, last, 0};
    const auto low = static_cast<int64_t>(position);
    return {low, low + 1, position - static_cast<double>(low)};
  }

  // Output positions [begin, end) among which all are that read position i.
  HT_HOST_DEVICE void readers(int64_t i, double step, int64_t* begin, int64_t* end) const {
    *begin = 0;
    *end = output;
    if (!(step > 0)) return;
    const double shift = nearest || align_corners ? 0 : 0.5;
    // One position more on either side for what rounding may do.
    const double first = (static_cast<double>(i) - 1 + shift) / step - shift - 1;
    const double behind = (static_cast<double>(i) + 1 + shift) / step - shift + 2;
    if (i > 0 && first > 0) *begin = first < static_cast<double>(output) ? int64_t(first) : output;
    if (i < input - 1 && behind < static_cast<double>(output)) *end = int64_t(behind);
  }
};

}  // namespace halftone::ops
