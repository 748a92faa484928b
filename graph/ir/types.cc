#include "halftone/graph/ir/types.h"

#include <ostream>

#include "halftone/core/check.h"

namespace halftone::ir {

const char* Name(Layout layout) {
  switch (layout) {
    case Layout::kPlain:
      return "plain";
    case Layout::kChannelsLast:
      return "nhwc";
    case Layout::kChannelBlocks:
      return "nchw16c";
  }
  return "plain";
}

std::optional<Layout> ParseLayout(const std::string& word) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast, Layout::kChannelBlocks}) {
    if (word == Name(layout)) return layout;
  }
  return std::nullopt;
}

bool CanLie(const Shape& shape, Layout layout) {
  if (layout == Layout::kPlain) return true;
  return shape.rank() == 4 &&
         (layout == Layout::kChannelsLast || shape.dim(1) % kChannelBlock == 0);
}

std::string ValueType::ToString() const {
  std::string text = halftone::Name(dtype) + shape.ToString();
  if (layout != Layout::kPlain) text += std::string("{") + Name(layout) + "}";
  return text;
}

std::string WhyItCannotLie(const ValueType& type, Layout layout) {
  std::string text = std::string("layout ") + Name(layout) + " of " + type.ToString();
  if (type.shape.rank() != 4) return text + "; expected rank 4";
  return text + "; expected a multiple of " + std::to_string(kChannelBlock) + " channels";
}

std::ostream& operator<<(std::ostream& out, const ValueType& type) {
  return out << type.ToString();
}

absl::InlinedVector<int64_t, 4> StridesOf(const ValueType& type) {
  absl::InlinedVector<int64_t, 4> strides = type.shape.strides();
  if (type.layout == Layout::kPlain) return strides;
  HT_CHECK(type.shape.rank() == 4, "a layout needs rank 4");
  HT_CHECK(type.layout == Layout::kChannelsLast, "channels in blocks have no one stride");
  const int64_t c = type.shape[1], h = type.shape[2], w = type.shape[3];
  strides[0] = h * w * c;
  strides[1] = 1;
  strides[2] = w * c;
  strides[3] = c;
  return strides;
}

StridedAxes StridedAxesOf(const ValueType& type) {
  if (type.layout == Layout::kChannelBlocks) return BlockAxesOf(type);
  const auto strides = StridesOf(type);
  const auto& extents = type.shape.dims();
  return {{extents.begin(), extents.end()}, {strides.begin(), strides.end()}};
}

StridedAxes BlockAxesOf(const ValueType& type) {
  HT_CHECK(CanLie(type.shape, Layout::kChannelBlocks), "no whole blocks of channels");
  const int64_t c = type.shape[1], h = type.shape[2], w = type.shape[3];
  StridedAxes axes{{type.shape[0], c / kChannelBlock, kChannelBlock, h, w}, {}};
  if (type.layout == Layout::kChannelBlocks) {
    axes.strides = {h * w * c, h * w * kChannelBlock, 1, w * kChannelBlock, kChannelBlock};
  } else {
    const auto s = StridesOf(type);
    axes.strides = {s[0], s[1] * kChannelBlock, s[1], s[2], s[3]};
  }
  return axes;
}

}  // namespace halftone::ir
