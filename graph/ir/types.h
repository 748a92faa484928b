// The static type of a value in a graph.
#pragma once

#include <string>

#include "halftone/core/dtype.h"
#include "halftone/core/shape.h"

namespace halftone::ir {

// Storage order of a rank-4 value whose logical shape is always [N, C, H, W]. All other ranks are
// kPlain.
enum class Layout : uint8_t { kPlain, kChannelsLast };

struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;
  Layout layout = Layout::kPlain;

  int64_t num_elements() const { return shape.num_elements(); }
  int64_t num_bytes() const { return shape.num_elements() * static_cast<int64_t>(SizeOf(dtype)); }
  // "f32[8,16]"; channels last: "f32[8,3,4,4]{nhwc}".
  std::string ToString() const;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

std::ostream& operator<<(std::ostream& out, const ValueType& type);

// Strides, in elements, of each *logical* axis for the type's layout.
absl::InlinedVector<int64_t, 4> StridesOf(const ValueType& type);

}  // namespace halftone::ir
