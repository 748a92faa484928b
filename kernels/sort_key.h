// Elements as unsigned numbers of the same order: what sorting compares, on every device.
#pragma once

#include <cstdint>
#include <cstring>

#include "halftone/core/host_device.h"

namespace halftone::kernels {

// Of the bits of a float or double, `infinity` those of infinity: -0 and 0 are equal, every NaN is
// the largest number there is.
template <typename Bits, typename Float>
HT_HOST_DEVICE inline Bits OrderedFloat(Float x, Bits infinity) {
  static_assert(sizeof(Bits) == sizeof(Float));
  Bits bits;
  memcpy(&bits, &x, sizeof(bits));
  const Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits size = bits & ~sign;
  if (size > infinity) return ~Bits{0};
  return size == 0 || bits == size ? size | sign : ~bits;
}

HT_HOST_DEVICE inline uint32_t OrderedKey(float x) { return OrderedFloat<uint32_t>(x, 0x7F800000); }
HT_HOST_DEVICE inline uint64_t OrderedKey(double x) {
  return OrderedFloat<uint64_t>(x, 0x7FF0000000000000);
}
HT_HOST_DEVICE inline uint64_t OrderedKey(int64_t x) {
  return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63);
}
HT_HOST_DEVICE inline uint32_t OrderedKey(int32_t x) {
  return static_cast<uint32_t>(x) ^ (uint32_t{1} << 31);
}
HT_HOST_DEVICE inline uint32_t OrderedKey(uint8_t x) { return x; }

}  // namespace halftone::kernels
