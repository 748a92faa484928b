// The static type of a value in a graph.
#pragma once

#include <optional>
#include <string>

#include "halftone/core/dtype.h"
#include "halftone/core/shape.h"

namespace halftone::ir {

// Storage order of a rank-4 value whose logical shape is always [N, C, H, W]: that, [N, H, W, C], or
// [N, C / 16, H, W, 16], where C is a multiple of 16. All other ranks are kPlain.
enum class Layout : uint8_t { kPlain, kChannelsLast, kChannelBlocks };
inline constexpr int64_t kChannelBlock = 16;

// "plain", "nhwc", "nchw16c": the words of the text form and of op relayout.
const char* Name(Layout layout);
std::optional<Layout> ParseLayout(const std::string& word);

// Whether a value of `shape` can lie so.
bool CanLie(const Shape& shape, Layout layout);

struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;
  Layout layout = Layout::kPlain;

  int64_t num_elements() const { return shape.num_elements(); }
  int64_t num_bytes() const { return shape.num_elements() * static_cast<int64_t>(SizeOf(dtype)); }
  // "f32[8,16]"; not plain: "f32[8,3,4,4]{nhwc}".
  std::string ToString() const;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

std::ostream& operator<<(std::ostream& out, const ValueType& type);

// What is wrong with a type that cannot lie so: "layout nhwc of f32[2,3]; expected rank 4".
std::string WhyItCannotLie(const ValueType& type, Layout layout);

// Strides, in elements, of each *logical* axis for the type's layout. Requires: not kChannelBlocks,
// where channels have no one stride.
absl::InlinedVector<int64_t, 4> StridesOf(const ValueType& type);

// Any layout as extents with a stride each, in the order of the logical shape.
struct StridedAxes {
  absl::InlinedVector<int64_t, 4> extents, strides;
};
// The axes of the shape, channels in two axes [C / 16, 16] where they lie in blocks.
StridedAxes StridedAxesOf(const ValueType& type);
// The same with channels in two axes whatever the layout, for what copies between layouts. Requires:
// rank 4, C a multiple of 16.
StridedAxes BlockAxesOf(const ValueType& type);

}  // namespace halftone::ir
