#include "halftone/passes/amp/range.h"

#include <algorithm>
#include <cmath>

namespace halftone::amp {
namespace {

// Halfway from the largest f16, 65504, to the next power of two, and to 2^-24, the smallest: a tie
// goes to the even side, which is infinity and 0.
constexpr double kOverflow = 65520, kUnderflow = 0x1p-25, kNormal = 0x1p-14;

}  // namespace

void Range::Add(const Tensor& tensor) {
  elements += tensor.num_elements();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double magnitude = std::fabs(tensor.at(i));
    if (!std::isfinite(magnitude)) {
      ++non_finite;
      nans += std::isnan(magnitude);
      continue;
    }
    largest = std::max(largest, magnitude);
    if (magnitude == 0) ++zeros;
    if (magnitude > 0) smallest = std::min(smallest, magnitude);
    if (magnitude >= kOverflow) ++overflows;
    if (magnitude > 0 && magnitude <= kUnderflow) ++underflows;
    if (magnitude > kUnderflow && magnitude < kNormal) ++subnormals;
  }
}

void Range::Add(const Range& other) {
  largest = std::max(largest, other.largest);
  smallest = std::min(smallest, other.smallest);
  elements += other.elements;
  zeros += other.zeros;
  non_finite += other.non_finite;
  nans += other.nans;
  overflows += other.overflows;
  underflows += other.underflows;
  subnormals += other.subnormals;
}

}  // namespace halftone::amp
