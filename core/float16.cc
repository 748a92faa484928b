// Conversions to and from the floats of 16 and 8 bits, with integer operations only.
//
// Invariants:
// 1. Narrowing rounds once, to nearest, ties to even, from all bits of the source.
// 2. A NaN stays a NaN: the quiet bit is set, so that dropping payload bits cannot leave an inf.
// 3. Subnormals are neither flushed on the way in nor on the way out.
// 4. What is finite saturates in 8 bits, and overflows to inf in 16. An inf stays inf where there is
//    one and is NaN elsewhere: a gradient that is not finite is seen to be.
#include <bit>
#include <type_traits>

#include "halftone/core/dtype.h"

namespace halftone {
namespace {

// An IEEE-754 layout: sign, kExponentBits, kMantissaBits.
template <typename Bits, int kExponent, int kMantissa>
struct Layout {
  using Uint = Bits;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kSignShift = kExponent + kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kMaxExponent = (1 << kExponent) - 1;  // of inf and NaN
  static constexpr Uint kHidden = static_cast<Uint>(Uint{1} << kMantissa);
};
using Binary64 = Layout<uint64_t, 11, 52>;
using Binary32 = Layout<uint32_t, 8, 23>;
using Binary16 = Layout<uint16_t, 5, 10>;
using BFloat16 = Layout<uint16_t, 8, 7>;
using Float8E5M2 = Layout<uint8_t, 5, 2>;
// Its largest exponent is of numbers, but for the one pattern that is NaN.
using Float8E4M3 = Layout<uint8_t, 4, 3>;

template <typename From, typename To>
typename To::Uint Narrow(typename From::Uint bits) {
  using Uint = typename From::Uint;
  using Narrowed = typename To::Uint;
  constexpr bool kHasInf = !std::is_same_v<To, Float8E4M3>;
  constexpr bool kSaturates = sizeof(Narrowed) == 1;
  constexpr uint32_t kAllOnes = (uint32_t{1} << To::kSignShift) - 1;
  constexpr uint32_t kInf =
      kHasInf ? static_cast<uint32_t>(To::kMaxExponent) << To::kMantissaBits : kAllOnes;
  constexpr int kDropped = From::kMantissaBits - To::kMantissaBits;

  const uint32_t sign = static_cast<uint32_t>(bits >> From::kSignShift) << To::kSignShift;
  const int exponent = static_cast<int>(bits >> From::kMantissaBits) & From::kMaxExponent;
  const Uint mantissa = bits & (From::kHidden - 1);

  if (exponent == From::kMaxExponent) {
    if (mantissa == 0) return static_cast<Narrowed>(sign | kInf);
    const uint32_t quiet = uint32_t{1} << (To::kMantissaBits - 1);
    const auto payload = static_cast<uint32_t>(mantissa >> kDropped);
    return static_cast<Narrowed>(sign | kInf | quiet | payload);
  }

  const Uint significand = exponent == 0 ? mantissa : mantissa | From::kHidden;
  int to_exponent = (exponent == 0 ? 1 : exponent) - From::kBias + To::kBias;
  int shift = kDropped;
  if (to_exponent < 1) {
    shift += 1 - to_exponent;
    to_exponent = 1;
  }
  // Less than half of the smallest subnormal; also keeps the shifts below the width of Uint.
  if (shift > From::kMantissaBits + 1) return static_cast<Narrowed>(sign);

  const Uint half = Uint{1} << (shift - 1);
  const Uint rest = significand & ((half << 1) - 1);
  auto rounded = static_cast<uint32_t>(significand >> shift);
  if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
  // The hidden bit of a normal number adds the missing one to the exponent, and a carry out of the
  // mantissa moves to the next binade by itself.
  const uint32_t magnitude =
      (static_cast<uint32_t>(to_exponent - 1) << To::kMantissaBits) + rounded;
  constexpr uint32_t kBeyond = kSaturates ? kInf - 1 : kInf;
  return static_cast<Narrowed>(sign | (magnitude < kInf ? magnitude : kBeyond));
}

}  // namespace

uint16_t F32ToF16Bits(float x) { return Narrow<Binary32, Binary16>(std::bit_cast<uint32_t>(x)); }
uint16_t F32ToBF16Bits(float x) { return Narrow<Binary32, BFloat16>(std::bit_cast<uint32_t>(x)); }
uint16_t F64ToF16Bits(double x) { return Narrow<Binary64, Binary16>(std::bit_cast<uint64_t>(x)); }
uint16_t F64ToBF16Bits(double x) { return Narrow<Binary64, BFloat16>(std::bit_cast<uint64_t>(x)); }
uint8_t F32ToF8E4M3Bits(float x) {
  return Narrow<Binary32, Float8E4M3>(std::bit_cast<uint32_t>(x));
}
uint8_t F32ToF8E5M2Bits(float x) {
  return Narrow<Binary32, Float8E5M2>(std::bit_cast<uint32_t>(x));
}
uint8_t F64ToF8E4M3Bits(double x) {
  return Narrow<Binary64, Float8E4M3>(std::bit_cast<uint64_t>(x));
}
uint8_t F64ToF8E5M2Bits(double x) {
  return Narrow<Binary64, Float8E5M2>(std::bit_cast<uint64_t>(x));
}

float F8E5M2BitsToF32(uint8_t bits) { return F16BitsToF32(static_cast<uint16_t>(bits << 8)); }

float F8E4M3BitsToF32(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24;
  const uint32_t magnitude = bits & 0x7F;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000);
  if (magnitude < 8) {  // below the smallest normal, 2^-6
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude * 0x1p-9F));
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + ((127 - 7) << 23)));
}

float BF16BitsToF32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float F16BitsToF32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t mantissa = bits & 0x3FF;
  uint32_t magnitude;
  if (exponent == 0x1F) {
    const uint32_t quiet = mantissa == 0 ? 0 : 0x400000;
    magnitude = 0x7F800000 | quiet | (mantissa << 13);
  } else if (exponent != 0) {
    magnitude = ((exponent + 127 - 15) << 23) | (mantissa << 13);
  } else if (mantissa != 0) {
    // mantissa * 2^-24: move the leading one to bit 10, which has the weight 2^-14 there.
    const int shift = std::countl_zero(mantissa) - 21;
    magnitude =
        (static_cast<uint32_t>(127 - 14 - shift) << 23) | (((mantissa << shift) & 0x3FF) << 13);
  } else {
    magnitude = 0;
  }
  return std::bit_cast<float>(sign | magnitude);
}

}  // namespace halftone
