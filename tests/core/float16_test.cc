// The oracle is a table of the values of all patterns, built with ldexp from the definition of the
// format; rounding is a search for the two neighbours in that table, in double.
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

struct Format {
  const char* name;
  int exponent_bits;
  int mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*from_float)(float);
  uint16_t (*from_double)(double);

  uint16_t inf() const {
    return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }
  // Of a pattern without sign, not NaN. The pattern of inf gets the value that would come next,
  // which is what rounding compares with.
  double Magnitude(int pattern) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = pattern >> mantissa_bits;
    const int mantissa = pattern % (1 << mantissa_bits);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
  std::vector<double> Magnitudes() const {
    std::vector<double> values;
    for (int pattern = 0; pattern <= inf(); ++pattern) values.push_back(Magnitude(pattern));
    return values;
  }
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

class Float16Test : public ::testing::TestWithParam<Format> {
 protected:
  const Format format_ = GetParam();
  const std::vector<double> magnitudes_ = format_.Magnitudes();

  // Round to nearest, ties to the even pattern.
  uint16_t Round(double x) const {
    const int sign = std::signbit(x) ? 0x8000 : 0;
    const double magnitude = std::abs(x);
    const auto above = std::lower_bound(magnitudes_.begin(), magnitudes_.end(), magnitude);
    if (above == magnitudes_.end()) return static_cast<uint16_t>(sign | format_.inf());
    const int high = static_cast<int>(above - magnitudes_.begin());
    if (*above == magnitude) return static_cast<uint16_t>(sign | high);
    const int low = high - 1;
    const double to_low = magnitude - magnitudes_[low];
    const double to_high = magnitudes_[high] - magnitude;
    const bool up = to_high < to_low || (to_high == to_low && high % 2 == 0);
    return static_cast<uint16_t>(sign | (up ? high : low));
  }

  void ExpectRounds(double x) const {
    ASSERT_EQ(format_.from_double(x), Round(x)) << x;
    ASSERT_EQ(format_.from_double(-x), Round(-x)) << -x;
    const auto narrow = static_cast<float>(x);
    ASSERT_EQ(format_.from_float(narrow), Round(narrow)) << narrow;
    ASSERT_EQ(format_.from_float(-narrow), Round(-narrow)) << -narrow;
  }
};

TEST_P(Float16Test, EveryPatternWidensToItsValue) {
  for (int pattern = 0; pattern <= 0xFFFF; ++pattern) {
    const int unsigned_pattern = pattern & 0x7FFF;
    const float got = format_.widen(static_cast<uint16_t>(pattern));
    ASSERT_EQ(std::signbit(got), pattern >= 0x8000) << pattern;
    if (unsigned_pattern > format_.inf()) {
      ASSERT_TRUE(std::isnan(got)) << pattern;
    } else if (unsigned_pattern == format_.inf()) {
      ASSERT_TRUE(std::isinf(got)) << pattern;
    } else {
      ASSERT_EQ(std::abs(static_cast<double>(got)), format_.Magnitude(unsigned_pattern)) << pattern;
    }
  }
}

TEST_P(Float16Test, EveryPatternComesBack) {
  for (int i = 0; i <= 0xFFFF; ++i) {
    const auto pattern = static_cast<uint16_t>(i);
    const float value = format_.widen(pattern);
    const uint16_t from_float = format_.from_float(value);
    const uint16_t from_double = format_.from_double(value);
    if (std::isnan(value)) {
      ASSERT_GT(from_float & 0x7FFF, format_.inf()) << i;
      ASSERT_GT(from_double & 0x7FFF, format_.inf()) << i;
      ASSERT_EQ(from_float & 0x8000, pattern & 0x8000) << i;
    } else {
      ASSERT_EQ(from_float, pattern);
      ASSERT_EQ(from_double, pattern);
    }
  }
}

TEST_P(Float16Test, TiesAndTheirNeighboursRoundToNearestEven) {
  for (int pattern = 0; pattern < format_.inf(); ++pattern) {
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

TEST_P(Float16Test, FloatsOfAllMagnitudes) {
  // A stride that is odd visits all low and high bits.
  constexpr uint32_t kStride = 40'503;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += kStride) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const uint16_t got = format_.from_float(x);
    if (std::isnan(x)) {
      ASSERT_GT(got & 0x7FFF, format_.inf()) << bits;
    } else {
      ASSERT_EQ(got, Round(x)) << x;
      ASSERT_EQ(format_.from_double(x), Round(x)) << x;
    }
  }
}

TEST_P(Float16Test, EveryNanStaysNan) {
  // Also where all payload bits are among those that the narrow format drops.
  for (int bit = 0; bit < 23; ++bit) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const auto nan = std::bit_cast<float>(sign | 0x7F800000u | 1u << bit);
      EXPECT_GT(format_.from_float(nan) & 0x7FFF, format_.inf()) << bit;
      EXPECT_EQ(format_.from_float(nan) >> 15, sign >> 31) << bit;
    }
  }
  for (int bit = 0; bit < 52; ++bit) {
    const auto nan = std::bit_cast<double>(0x7FF0000000000000u | uint64_t{1} << bit);
    EXPECT_GT(format_.from_double(nan) & 0x7FFF, format_.inf()) << bit;
  }
}

TEST_P(Float16Test, Extremes) {
  EXPECT_EQ(format_.from_double(kInf), format_.inf());
  EXPECT_EQ(format_.from_double(-kInf), format_.inf() | 0x8000);
  EXPECT_EQ(format_.from_float(static_cast<float>(kInf)), format_.inf());
  EXPECT_EQ(format_.from_double(std::numeric_limits<double>::max()), format_.inf());
  EXPECT_EQ(format_.from_double(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(format_.from_double(-std::numeric_limits<double>::denorm_min()), 0x8000);
  EXPECT_EQ(format_.from_float(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(format_.from_float(-0.0F), 0x8000);
  const double smallest = magnitudes_[1];
  EXPECT_EQ(format_.from_double(smallest), 1);
  EXPECT_EQ(format_.from_double(smallest / 2), 0);
  EXPECT_EQ(format_.from_double(std::nextafter(smallest / 2, 1.0)), 1);
  EXPECT_EQ(format_.from_double(smallest * 1.5), 2);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Float16Test,
    ::testing::Values(Format{"f16", 5, 10, F16BitsToF32, F32ToF16Bits, F64ToF16Bits},
                      Format{"bf16", 8, 7, BF16BitsToF32, F32ToBF16Bits, F64ToBF16Bits}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(F16Test, LiteralValues) {
  EXPECT_EQ(F32ToF16Bits(1.0F), 0x3C00);
  EXPECT_EQ(F32ToF16Bits(-2.0F), 0xC000);
  EXPECT_EQ(F32ToF16Bits(65504.0F), 0x7BFF);
  EXPECT_EQ(F32ToF16Bits(2049.0F), 0x6800);  // 2048
  EXPECT_EQ(F32ToF16Bits(2051.0F), 0x6802);  // 2052
  EXPECT_EQ(F16BitsToF32(0x0001), 0x1p-24F);
  EXPECT_EQ(F16BitsToF32(0x03FF), 1023 * 0x1p-24F);
  EXPECT_EQ(F16BitsToF32(0x2E66), 0.0999755859375F);
}

TEST(F16Test, OverflowsFromTheTieOn) {
  EXPECT_EQ(F64ToF16Bits(65520.0), 0x7C00);
  EXPECT_EQ(F64ToF16Bits(-65520.0), 0xFC00);
  EXPECT_EQ(F64ToF16Bits(std::nextafter(65520.0, 0.0)), 0x7BFF);
  EXPECT_EQ(F32ToF16Bits(65520.0F), 0x7C00);
  EXPECT_EQ(F32ToF16Bits(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(F32ToF16Bits(1e30F), 0x7C00);
}

TEST(BF16Test, LiteralValues) {
  EXPECT_EQ(F32ToBF16Bits(1.0F), 0x3F80);
  EXPECT_EQ(F32ToBF16Bits(257.0F), 0x4380);  // 256
  EXPECT_EQ(F32ToBF16Bits(259.0F), 0x4382);  // 260
  EXPECT_EQ(F32ToBF16Bits(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(F64ToBF16Bits(255.5 * 0x1p120), 0x7F80);
  EXPECT_EQ(F64ToBF16Bits(std::nextafter(255.5 * 0x1p120, 0.0)), 0x7F7F);
  EXPECT_EQ(BF16BitsToF32(0x0040), 0x1p-127F);  // subnormal
}

TEST(DoubleRoundingTest, DoublesRoundOnce) {
  // In float both lose their last bit and become a tie, which would go down to even.
  const double above_f16_tie = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(F32ToF16Bits(static_cast<float>(above_f16_tie)), 0x3C00);
  EXPECT_EQ(F64ToF16Bits(above_f16_tie), 0x3C01);
  EXPECT_EQ(F16(above_f16_tie).bits, 0x3C01);
  const double above_bf16_tie = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(F32ToBF16Bits(static_cast<float>(above_bf16_tie)), 0x3F80);
  EXPECT_EQ(F64ToBF16Bits(above_bf16_tie), 0x3F81);
  EXPECT_EQ(BF16(above_bf16_tie).bits, 0x3F81);
  // And here the tie would go up to even.
  EXPECT_EQ(F64ToF16Bits(1 + 3 * 0x1p-11 - 0x1p-40), 0x3C01);
  EXPECT_EQ(F64ToBF16Bits(1 + 3 * 0x1p-8 - 0x1p-40), 0x3F81);
}

}  // namespace
}  // namespace halftone
