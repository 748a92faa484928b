#include "halftone/graph/ir/types.h"

#include <ostream>

#include "halftone/core/check.h"

namespace halftone::ir {

std::string ValueType::ToString() const {
  std::string text = Name(dtype) + shape.ToString();
  if (layout == Layout::kChannelsLast) text += "{nhwc}";
  return text;
}

std::ostream& operator<<(std::ostream& out, const ValueType& type) {
  return out << type.ToString();
}

absl::InlinedVector<int64_t, 4> StridesOf(const ValueType& type) {
  absl::InlinedVector<int64_t, 4> strides = type.shape.strides();
  if (type.layout == Layout::kPlain) return strides;
  HT_CHECK(type.shape.rank() == 4, "channels-last needs rank 4");
  const int64_t c = type.shape[1], h = type.shape[2], w = type.shape[3];
  strides[0] = h * w * c;
  strides[1] = 1;
  strides[2] = w * c;
  strides[3] = c;
  return strides;
}

}  // namespace halftone::ir
