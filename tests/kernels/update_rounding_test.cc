// How updates store bf16: the functions of one element against what they promise, over all random
// bits, and the vectors against them at every SIMD level.
#include "halftone/kernels/update_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/core/philox.h"
#include "halftone/kernels/cpu/simd/update_rounding.h"
#include "halftone/tests/kernels/simd_levels.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

using kernels::Compensated;
using kernels::LostOf;
using kernels::RoundStochastically;

constexpr uint32_t kAllBits = 1 << 16;  // what 16 random bits may be

float Rounded(float x, uint32_t random) { return BF16BitsToF32(RoundStochastically(x, random)); }

TEST(UpdateRounding, TheMeanOverAllRandomBitsIsTheValue) {
  for (const float x : {1.0f + 0x1p-10f, -1.0f - 0x1p-10f, 3.14159274f, -2.71828175f, 1e-20f,
                        0x1.fffffep+99f, 0x1.234567p-130f, -0x1p-140f, 0x1p-149f, 65504.0f}) {
    double sum = 0, least = kInf, most = -kInf;
    for (uint32_t random = 0; random < kAllBits; ++random) {
      const double y = Rounded(x, random);
      sum += y;
      least = std::min(least, y);
      most = std::max(most, y);
    }
    // Whole multiples of 2^-16 of the distance between two neighbours: nothing is rounded here.
    EXPECT_EQ(sum / kAllBits, static_cast<double>(x)) << x;
    EXPECT_LT(least, x);
    EXPECT_GT(most, x);
    const float lower = static_cast<float>(least), upper = static_cast<float>(most);
    EXPECT_EQ(F32ToBF16Bits(lower) + (x < 0 ? -1 : 1), F32ToBF16Bits(upper))
        << "neighbours of " << x;
  }
}

TEST(UpdateRounding, WhatBF16HasNeverMoves) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<uint16_t>(code);
    const float x = BF16BitsToF32(bits);
    for (const uint32_t random : {0u, 1u, 0x8000u, 0xFFFFu}) {
      const uint16_t y = RoundStochastically(x, random);
      EXPECT_EQ(y, std::isnan(x) ? bits | 0x40 : bits) << code;
    }
  }
}

TEST(UpdateRounding, ANaNStaysOneAndTheLargestMayBecomeInfinite) {
  uint32_t bits = 0x7F800001;  // the payload is below what bf16 keeps
  float nan = 0;
  std::memcpy(&nan, &bits, sizeof(nan));
  for (const uint32_t random : {0u, 0xFFFFu}) EXPECT_TRUE(std::isnan(Rounded(nan, random)));
  bits = 0xFFFFFFFF;
  std::memcpy(&nan, &bits, sizeof(nan));
  for (const uint32_t random : {0u, 0xFFFFu}) EXPECT_TRUE(std::isnan(Rounded(nan, random)));
  const float largest = static_cast<float>(MaxFinite(DType::kF32));
  EXPECT_EQ(Rounded(largest, 0), MaxFinite(DType::kBF16));
  EXPECT_EQ(Rounded(largest, 1), kInf);
  EXPECT_EQ(Rounded(-largest, 1), -kInf);
}

TEST(UpdateRounding, ACompensationIsWhatRoundingTook) {
  PhiloxStream random(3);
  for (int i = 0; i < 20000; ++i) {
    const float x = random.Normal() * std::ldexp(1.0f, static_cast<int>(random.Below(60)) - 30);
    const float kept = static_cast<float>(BF16(x)), lost = LostOf(x, kept);
    EXPECT_EQ(static_cast<double>(kept) + static_cast<double>(lost), static_cast<double>(x));
    // Half a unit in the last place, of 8 digits, times 8 more digits.
    const float stored = static_cast<float>(BF16(lost));
    EXPECT_LE(std::abs(stored - lost), std::abs(x) * 0x1p-17);
    EXPECT_EQ(Compensated(kept, stored), kept + stored) << "it is taken for the parameter's own";
  }
  EXPECT_EQ(LostOf(kInf, kInf), 0);
  EXPECT_EQ(LostOf(3.4e38f, kInf), 0);
  EXPECT_EQ(LostOf(kNaN, kNaN), 0);
}

TEST(UpdateRounding, ACompensationOfAnotherValueCountsAsZero) {
  EXPECT_EQ(Compensated(1, 0x1p-9f), 1 + 0x1p-9f);
  EXPECT_EQ(Compensated(1, -0x1p-8f), 1 - 0x1p-8f);  // half a unit in the last place
  EXPECT_EQ(Compensated(1, 0x1.02p-8f), 1);
  EXPECT_EQ(Compensated(0, 0x1p-100f), 0);
  EXPECT_EQ(Compensated(-4, 1), -4);
  EXPECT_EQ(Compensated(2, kInf), 2);
  EXPECT_EQ(Compensated(2, kNaN), 2);
  EXPECT_TRUE(std::isnan(Compensated(kNaN, 0)));
  EXPECT_EQ(Compensated(kInf, 0), kInf);
}

// Every pair of a sign and exponent, and mantissas at random; inf and NaN among them.
std::vector<float> Values(size_t count) {
  std::vector<float> values(count);
  PhiloxStream random(11);
  for (float& x : values) {
    const uint32_t bits = random.NextWord();
    std::memcpy(&x, &bits, sizeof(x));
  }
  const double special[] = {0, -0.0, kInf, -kInf, kNaN, 0x1p-149, 0x1.fffffep+127};
  std::transform(std::begin(special), std::end(special), values.begin(),
                 [](double x) { return static_cast<float>(x); });
  return values;
}

bool Same(const BF16& a, const BF16& b) {
  return a.bits == b.bits ||
         (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b)));
}

class UpdateRoundingLevels : public ::testing::TestWithParam<SimdLevel> {
 protected:
  ForcedSimdLevel forced_{GetParam()};
  kernels::UpdateRoundingFns fns_ = kernels::FindUpdateRounding();
};

TEST_P(UpdateRoundingLevels, RoundsAsOneElementDoesWhereverAPieceBegins) {
  const std::vector<float> x = Values(1000);
  for (const int result : {0, 1, 2, 3}) {
    for (const int64_t first : std::initializer_list<int64_t>{0, 1, 2, 3, 5, 4096, 4294967290}) {
      for (const int64_t n : {1, 3, 4, 7, 63, 65, 1000}) {
        std::vector<BF16> got(static_cast<size_t>(n) + 1);
        got.back().bits = 0x1234;
        fns_.round_stochastically({42, 7, result}, first, x.data(), got.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t element = first + i;
          const PhiloxCounter words = PhiloxBlock(42, 7, kernels::RoundingGroup(result, element));
          BF16 want;
          want.bits = RoundStochastically(x[i], kernels::RoundingBits(words[element % 4], result));
          ASSERT_TRUE(Same(got[i], want)) << result << " " << first << " " << i;
        }
        ASSERT_EQ(got.back().bits, 0x1234) << "written behind the end";
      }
    }
  }
}

TEST_P(UpdateRoundingLevels, SplitsAndCompensatesAsOneElementDoes) {
  const std::vector<float> x = Values(1003);
  std::vector<BF16> param(x.size()), compensation(x.size());
  fns_.split(x.data(), param.data(), compensation.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(Same(param[i], BF16(x[i]))) << x[i];
    ASSERT_TRUE(Same(compensation[i], BF16(LostOf(x[i], static_cast<float>(param[i]))))) << x[i];
  }
  for (size_t i = 0; i < x.size(); i += 5) compensation[i] = BF16(x[i] / 3);
  std::vector<float> got(x.size());
  fns_.compensate(param.data(), compensation.data(), got.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const float want =
        Compensated(static_cast<float>(param[i]), static_cast<float>(compensation[i]));
    ASSERT_TRUE(got[i] == want || (std::isnan(got[i]) && std::isnan(want))) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Here, UpdateRoundingLevels, ::testing::ValuesIn(SimdLevelsHere()));

}  // namespace
}  // namespace halftone::testing
