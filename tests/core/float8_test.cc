// The oracle is a table of the values of all patterns, built with ldexp from table 1 of the OCP
// 8-bit specification; rounding is a search for the two neighbours in that table, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/tests/support/special_values.h"

namespace halftone {
namespace {

using testing::kInf;

struct Format8 {
  const char* name;
  int mantissa_bits;
  int bias;
  int largest;  // pattern of the largest finite number, without sign
  bool has_inf;
  float (*widen)(uint8_t);
  uint8_t (*from_float)(float);
  uint8_t (*from_double)(double);

  double Magnitude(int pattern) const {
    const int exponent = pattern >> mantissa_bits;
    const int mantissa = pattern % (1 << mantissa_bits);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
};

void PrintTo(const Format8& format, std::ostream* out) { *out << format.name; }

class Float8Test : public ::testing::TestWithParam<Format8> {
 protected:
  Float8Test() {
    for (int p = 0; p <= format_.largest; ++p) magnitudes_.push_back(format_.Magnitude(p));
  }

  bool IsNan(int bits) const {
    const int pattern = bits & 0x7F;
    return format_.has_inf ? pattern > format_.largest + 1 : pattern > format_.largest;
  }

  // Of a finite x: to nearest, ties to the even pattern, and the largest for all beyond it.
  uint8_t Round(double x) const {
    const int sign = std::signbit(x) ? 0x80 : 0;
    const double magnitude = std::abs(x);
    const auto above = std::lower_bound(magnitudes_.begin(), magnitudes_.end(), magnitude);
    if (above == magnitudes_.end()) return static_cast<uint8_t>(sign | format_.largest);
    const int high = static_cast<int>(above - magnitudes_.begin());
    if (*above == magnitude) return static_cast<uint8_t>(sign | high);
    const int low = high - 1;
    const double to_low = magnitude - magnitudes_[low], to_high = magnitudes_[high] - magnitude;
    const bool up = to_high < to_low || (to_high == to_low && high % 2 == 0);
    return static_cast<uint8_t>(sign | (up ? high : low));
  }

  void ExpectRounds(double x) const {
    ASSERT_EQ(format_.from_double(x), Round(x)) << x;
    ASSERT_EQ(format_.from_double(-x), Round(-x)) << -x;
    const auto narrow = static_cast<float>(x);
    ASSERT_EQ(format_.from_float(narrow), Round(narrow)) << narrow;
    ASSERT_EQ(format_.from_float(-narrow), Round(-narrow)) << -narrow;
  }

  const Format8 format_ = GetParam();
  std::vector<double> magnitudes_;
};

TEST_P(Float8Test, EveryPatternWidensToItsValueAndComesBack) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto pattern = static_cast<uint8_t>(bits);
    const float value = format_.widen(pattern);
    EXPECT_EQ(std::signbit(value), bits >= 0x80) << bits;
    if (IsNan(bits)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(IsNan(format_.from_float(value))) << bits;
      EXPECT_TRUE(IsNan(format_.from_double(value))) << bits;
      EXPECT_EQ(format_.from_float(value) & 0x80, bits & 0x80) << bits;
      continue;
    }
    if ((bits & 0x7F) > format_.largest) {
      EXPECT_TRUE(std::isinf(value)) << bits;
    } else {
      EXPECT_EQ(std::abs(static_cast<double>(value)), format_.Magnitude(bits & 0x7F)) << bits;
    }
    EXPECT_EQ(format_.from_float(value), pattern);
    EXPECT_EQ(format_.from_double(value), pattern);
  }
}

TEST_P(Float8Test, TiesAndTheirNeighboursRoundToNearestEven) {
  for (int pattern = 0; pattern < format_.largest; ++pattern) {
    const double tie = (magnitudes_[pattern] + magnitudes_[pattern + 1]) / 2;
    ASSERT_NO_FATAL_FAILURE(ExpectRounds(tie));
    // Nearest doubles for F64To*, nearest floats for F32To*.
    for (const double toward : {0.0, kInf}) {
      ASSERT_NO_FATAL_FAILURE(ExpectRounds(std::nextafter(tie, toward)));
      ASSERT_NO_FATAL_FAILURE(
          ExpectRounds(std::nextafter(static_cast<float>(tie), static_cast<float>(toward))));
      ASSERT_NO_FATAL_FAILURE(ExpectRounds(std::nextafter(magnitudes_[pattern], toward)));
    }
  }
}

TEST_P(Float8Test, FloatsOfAllMagnitudes) {
  // A stride that is odd visits all low and high bits.
  constexpr uint32_t kStride = 40'503;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += kStride) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const uint8_t got = format_.from_float(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(IsNan(got)) << bits;
    } else if (std::isfinite(x)) {
      ASSERT_EQ(got, Round(x)) << x;
      ASSERT_EQ(format_.from_double(x), Round(x)) << x;
    }
  }
}

TEST_P(Float8Test, FiniteNumbersSaturateAndOthersStayNotFinite) {
  const double largest = magnitudes_.back();
  for (const double x : {std::nextafter(largest, kInf), largest * 1.0625, largest * 2, 1e30}) {
    ASSERT_NO_FATAL_FAILURE(ExpectRounds(x));
    EXPECT_EQ(format_.widen(format_.from_double(x)), largest) << x;
  }
  EXPECT_EQ(format_.from_double(std::numeric_limits<double>::max()), format_.largest);
  EXPECT_EQ(format_.from_float(std::numeric_limits<float>::max()), format_.largest);
  const int inf = format_.largest + 1;  // NaN where there is no inf
  EXPECT_EQ(format_.from_double(kInf), inf);
  EXPECT_EQ(format_.from_double(-kInf), inf | 0x80);
  EXPECT_EQ(format_.from_float(static_cast<float>(kInf)), inf);
  EXPECT_EQ(format_.from_float(static_cast<float>(-kInf)), inf | 0x80);
  for (int bit = 0; bit < 23; ++bit) {
    const auto nan = std::bit_cast<float>(0x7F800000u | 1u << bit);
    EXPECT_TRUE(IsNan(format_.from_float(nan))) << bit;
  }
  for (int bit = 0; bit < 52; ++bit) {
    const auto nan = std::bit_cast<double>(0x7FF0000000000000u | uint64_t{1} << bit);
    EXPECT_TRUE(IsNan(format_.from_double(nan))) << bit;
  }
}

TEST_P(Float8Test, SmallNumbersAreGraduallyLost) {
  const double smallest = magnitudes_[1];
  EXPECT_EQ(format_.from_double(smallest / 2), 0);
  EXPECT_EQ(format_.from_double(-smallest / 2), 0x80);
  EXPECT_EQ(format_.from_double(std::nextafter(smallest / 2, 1.0)), 1);
  EXPECT_EQ(format_.from_double(smallest * 1.5), 2);
  EXPECT_EQ(format_.from_double(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(format_.from_float(-std::numeric_limits<float>::denorm_min()), 0x80);
  EXPECT_EQ(format_.from_float(-0.0F), 0x80);
}

INSTANTIATE_TEST_SUITE_P(Formats, Float8Test,
                         ::testing::Values(Format8{"f8e4m3", 3, 7, 0x7E, false, F8E4M3BitsToF32,
                                                   F32ToF8E4M3Bits, F64ToF8E4M3Bits},
                                           Format8{"f8e5m2", 2, 15, 0x7B, true, F8E5M2BitsToF32,
                                                   F32ToF8E5M2Bits, F64ToF8E5M2Bits}),
                         [](const auto& info) { return std::string(info.param.name); });

// The rows of table 1 of the specification.
TEST(F8E4M3Test, LiteralValues) {
  EXPECT_EQ(F8E4M3BitsToF32(0x7E), 448.0F);
  EXPECT_EQ(F8E4M3BitsToF32(0x08), 0x1p-6F);
  EXPECT_EQ(F8E4M3BitsToF32(0x07), 0.875F * 0x1p-6F);
  EXPECT_EQ(F8E4M3BitsToF32(0x01), 0x1p-9F);
  EXPECT_TRUE(std::isnan(F8E4M3BitsToF32(0x7F)));
  EXPECT_TRUE(std::isnan(F8E4M3BitsToF32(0xFF)));
  EXPECT_EQ(F8E4M3(1.0F).bits, 0x38);
  EXPECT_EQ(F8E4M3(-2.5).bits, 0xC2);
  EXPECT_EQ(static_cast<double>(F8E4M3(0.3)), 0.3125);
}

TEST(F8E5M2Test, LiteralValues) {
  EXPECT_EQ(F8E5M2BitsToF32(0x7B), 57344.0F);
  EXPECT_EQ(F8E5M2BitsToF32(0x7C), static_cast<float>(kInf));
  EXPECT_EQ(F8E5M2BitsToF32(0x04), 0x1p-14F);
  EXPECT_EQ(F8E5M2BitsToF32(0x03), 0.75F * 0x1p-14F);
  EXPECT_EQ(F8E5M2BitsToF32(0x01), 0x1p-16F);
  for (const uint8_t nan : {0x7D, 0x7E, 0x7F, 0xFD}) EXPECT_TRUE(std::isnan(F8E5M2BitsToF32(nan)));
  EXPECT_EQ(F8E5M2(1.0F).bits, 0x3C);
  EXPECT_EQ(F8E5M2(-2.5).bits, 0xC1);
  EXPECT_EQ(static_cast<double>(F8E5M2(0.3)), 0.3125);
}

}  // namespace
}  // namespace halftone
