// amp::Range: how large and how small the numbers of a value were, and what f16 makes of them.
#pragma once

#include <cstdint>
#include <limits>

#include "halftone/core/tensor.h"

namespace halftone::amp {

// Of the elements of one value, over all tensors that were added.
struct Range {
  double largest = 0;                                         // finite magnitude
  double smallest = std::numeric_limits<double>::infinity();  // magnitude that is not 0
  int64_t elements = 0;
  int64_t zeros = 0;
  int64_t non_finite = 0;
  int64_t nans = 0;        // of the former
  int64_t overflows = 0;   // finite, and infinite in f16: 65520 and more
  int64_t underflows = 0;  // not 0, and 0 in f16: 2^-25 and less
  int64_t subnormals = 0;  // more than that, and below 2^-14: f16 has fewer digits there

  // Takes in a tensor of floats.
  void Add(const Tensor& tensor);
  // Takes in what another one has.
  void Add(const Range& other);
  bool is_finite() const { return non_finite == 0; }
};

}  // namespace halftone::amp
