// Element conversions: every pair of types is FromDouble(ToDouble(x)) or FromInt(ToInt(x)).
#include "halftone/core/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "halftone/core/check.h"

namespace halftone {
namespace {

// A bool as it lies in memory. Any nonzero byte counts as true, so that bytes from outside are
// safe.
struct BoolByte {
  uint8_t byte;
};
static_assert(sizeof(BoolByte) == sizeof(bool));

template <typename T>
constexpr bool kIsNarrow = std::is_same_v<T, F16> || std::is_same_v<T, BF16> ||
                           std::is_same_v<T, F8E4M3> || std::is_same_v<T, F8E5M2>;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsNarrow<T>;

template <typename T>
T SaturateDouble(double x) {
  if (std::isnan(x)) return 0;
  // 2^63 for int64, whose largest value is not a double; exact for the others.
  constexpr double kEnd = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  constexpr auto kBegin = static_cast<double>(std::numeric_limits<T>::min());
  if (x >= kEnd) return std::numeric_limits<T>::max();
  if (x <= kBegin) return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

// A double that rounds to any float of 16 or 8 bits as `x` itself does: bits below the 53 leading ones are
// gathered in a sticky bit (rounding to odd), which no 16-bit format reaches.
double StickyDouble(int64_t x) {
  const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  constexpr uint64_t kLow = 0x7FF;
  uint64_t kept = magnitude;
  if (magnitude >> 53 != 0) {
    kept = (magnitude & ~kLow) | ((magnitude & kLow) != 0 ? kLow + 1 : 0);
  }
  const auto value = static_cast<double>(kept);
  return x < 0 ? -value : value;
}

template <typename T>
double ToDouble(T x) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return x.byte != 0 ? 1.0 : 0.0;
  } else {
    return static_cast<double>(x);
  }
}

template <typename T>
T FromDouble(double x) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (kIsNarrow<T>) {
    return T(x);
  } else if constexpr (kIsFloat<T>) {
    return static_cast<T>(x);
  } else {
    return SaturateDouble<T>(x);
  }
}

template <typename T>
int64_t ToInt(T x) {
  if constexpr (kIsFloat<T>) {
    return SaturateDouble<int64_t>(static_cast<double>(x));
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    return x.byte != 0 ? 1 : 0;
  } else {
    return static_cast<int64_t>(x);
  }
}

template <typename T>
T FromInt(int64_t x) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (kIsNarrow<T>) {
    return T(StickyDouble(x));
  } else if constexpr (kIsFloat<T>) {
    return static_cast<T>(x);
  } else {
    constexpr auto kMin = static_cast<int64_t>(std::numeric_limits<T>::min());
    constexpr auto kMax = static_cast<int64_t>(std::numeric_limits<T>::max());
    return static_cast<T>(x < kMin ? kMin : (x > kMax ? kMax : x));
  }
}

template <typename From, typename To>
void ConvertTyped(const From* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kIsFloat<From>) {
      to[i] = FromDouble<To>(ToDouble(from[i]));
    } else {
      to[i] = FromInt<To>(ToInt(from[i]));
    }
  }
}

// Calls fn with a null pointer of the storage type of `dtype`.
template <typename Fn>
auto Visit(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::kF64:
      return fn(static_cast<double*>(nullptr));
    case DType::kF32:
      return fn(static_cast<float*>(nullptr));
    case DType::kF16:
      return fn(static_cast<F16*>(nullptr));
    case DType::kBF16:
      return fn(static_cast<BF16*>(nullptr));
    case DType::kI64:
      return fn(static_cast<int64_t*>(nullptr));
    case DType::kI32:
      return fn(static_cast<int32_t*>(nullptr));
    case DType::kU8:
      return fn(static_cast<uint8_t*>(nullptr));
    case DType::kBool:
      return fn(static_cast<BoolByte*>(nullptr));
    case DType::kF8E4M3:
      return fn(static_cast<F8E4M3*>(nullptr));
    case DType::kF8E5M2:
      return fn(static_cast<F8E5M2*>(nullptr));
  }
  internal::CheckFailed(__FILE__, __LINE__, "dtype", "not a DType");
}

template <typename Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

}  // namespace

double LoadDouble(const void* data, DType dtype, int64_t i) {
  return Visit(dtype, [&](auto* tag) {
    return ToDouble(static_cast<const Pointee<decltype(tag)>*>(data)[i]);
  });
}

void StoreDouble(void* data, DType dtype, int64_t i, double x) {
  Visit(dtype, [&](auto* tag) {
    using T = Pointee<decltype(tag)>;
    static_cast<T*>(data)[i] = FromDouble<T>(x);
  });
}

int64_t LoadInt(const void* data, DType dtype, int64_t i) {
  return Visit(
      dtype, [&](auto* tag) { return ToInt(static_cast<const Pointee<decltype(tag)>*>(data)[i]); });
}

void StoreInt(void* data, DType dtype, int64_t i, int64_t x) {
  Visit(dtype, [&](auto* tag) {
    using T = Pointee<decltype(tag)>;
    static_cast<T*>(data)[i] = FromInt<T>(x);
  });
}

void ConvertElements(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  if (from_dtype == to_dtype) {
    if (from != to && count > 0) {
      std::memcpy(to, from, static_cast<size_t>(count) * SizeOf(to_dtype));
    }
    return;
  }
  Visit(from_dtype, [&](auto* from_tag) {
    Visit(to_dtype, [&](auto* to_tag) {
      ConvertTyped(static_cast<const Pointee<decltype(from_tag)>*>(from),
                   static_cast<Pointee<decltype(to_tag)>*>(to), count);
    });
  });
}

void FillElements(double value, void* to, DType dtype, int64_t count) {
  Visit(dtype, [&](auto* tag) {
    using T = Pointee<decltype(tag)>;
    std::fill_n(static_cast<T*>(to), count, FromDouble<T>(value));
  });
}

}  // namespace halftone
