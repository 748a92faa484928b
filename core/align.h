// Rounding up to whole units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace halftone {

// The smallest multiple of `unit` that is not below `value`. Requires: value >= 0, unit > 0, and a
// result that T holds.
template <typename T>
constexpr T AlignUp(T value, std::type_identity_t<T> unit) {
  return (value + unit - 1) / unit * unit;
}

// The first address from `p` on that is a multiple of `unit`; null for null.
inline void* AlignUp(void* p, size_t unit) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return static_cast<char*>(p) + (AlignUp<uintptr_t>(address, unit) - address);
}

}  // namespace halftone
