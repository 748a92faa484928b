// What the axes of `pad` read: for inference, the gradient, and kernels of all devices.
#pragma once

#include <cstdint>
#include <string_view>

#include "halftone/core/host_device.h"

namespace halftone::ops {

enum class PadMode : unsigned char { kConstant, kReflect, kReplicate };

// Of the attribute's values, constant, reflect and replicate.
inline PadMode PadModeOf(std::string_view mode) {
  if (mode == "reflect") return PadMode::kReflect;
  return mode == "replicate" ? PadMode::kReplicate : PadMode::kConstant;
}

// Along an axis of extent n: where position i of the result, which begins `before` positions before
// x, is read from; -1: nowhere. Requires: what inference of `pad` has accepted.
HT_HOST_DEVICE inline int64_t PaddedFrom(PadMode mode, int64_t i, int64_t before, int64_t n) {
  const int64_t at = i - before;
  if (at >= 0 && at < n) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kReplicate) return at < 0 ? 0 : n - 1;
  return at < 0 ? -at : 2 * (n - 1) - at;
}

}  // namespace halftone::ops
