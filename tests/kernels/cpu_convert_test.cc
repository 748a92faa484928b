// The SIMD conversions against the scalar ones of core, bit for bit (any NaN equals any NaN of the
// same sign), at every SIMD level.
#include <gtest/gtest.h>

#include <cstring>

#include "halftone/core/philox.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/tests/kernels/simd_levels.h"

namespace halftone::testing {
namespace {

uint16_t ToLowBits(float x, DType to) {
  return to == DType::kF16 ? F32ToF16Bits(x) : F32ToBF16Bits(x);
}
float FromLowBits(uint16_t bits, DType from) {
  return from == DType::kF16 ? F16BitsToF32(bits) : BF16BitsToF32(bits);
}
bool SameFloat(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && std::isnan(b) && std::signbit(a) == std::signbit(b);
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}
bool SameLow(uint16_t a, uint16_t b, DType dtype) {
  return a == b || (std::isnan(FromLowBits(a, dtype)) && std::isnan(FromLowBits(b, dtype)) &&
                    (a & 0x8000) == (b & 0x8000));
}

// Every 16-bit pattern of each low type widened is a tie's neighbour at most: the interesting
// places, between two values, and random patterns.
std::vector<float> Patterns() {
  std::vector<uint32_t> bits;
  for (uint32_t low = 0; low < 0x10000; ++low) {
    bits.push_back(low << 16);           // the bf16 values
    bits.push_back(low << 16 | 0x8000);  // ties between them
    bits.push_back(low << 16 | 0x7FFF);  // just below
    bits.push_back(low << 16 | 0x8001);  // just above
  }
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float x = F16BitsToF32(static_cast<uint16_t>(half));
    const float next = F16BitsToF32(static_cast<uint16_t>(half + 1));
    const float tie = x / 2 + next / 2;
    for (float f : {x, tie, std::nextafter(tie, 0.0f), std::nextafter(tie, HUGE_VALF)}) {
      uint32_t b;
      std::memcpy(&b, &f, sizeof b);
      bits.push_back(b);
    }
  }
  PhiloxStream random(5);
  for (int i = 0; i < 300000; ++i) bits.push_back(random.NextWord());
  std::vector<float> values(bits.size());
  std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  return values;
}

class CpuConvertTest : public ::testing::TestWithParam<SimdLevel> {};

TEST_P(CpuConvertTest, RoundsAsCoreDoes) {
  const ForcedSimdLevel forced(GetParam());
  const std::vector<float> values = Patterns();
  for (DType to : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> got(values.size());
    kernels::Convert(values.data(), DType::kF32, got.data(), to,
                     static_cast<int64_t>(values.size()));
    int wrong = 0;
    for (size_t i = 0; i < values.size() && wrong < 5; ++i) {
      const uint16_t want = ToLowBits(values[i], to);
      if (SameLow(got[i], want, to)) continue;
      ++wrong;
      ADD_FAILURE() << Name(to) << " of " << std::hexfloat << values[i] << ": " << std::hex
                    << got[i] << ", expected " << want;
    }
  }
}

TEST_P(CpuConvertTest, WidensEveryPattern) {
  const ForcedSimdLevel forced(GetParam());
  std::vector<uint16_t> bits(0x10000);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (DType from : {DType::kF16, DType::kBF16}) {
    std::vector<float> got(bits.size());
    kernels::Convert(bits.data(), from, got.data(), DType::kF32, 0x10000);
    for (size_t i = 0; i < bits.size(); ++i) {
      ASSERT_TRUE(SameFloat(got[i], FromLowBits(bits[i], from))) << Name(from) << " " << i;
    }
  }
}

TEST_P(CpuConvertTest, BetweenTheLowTypesRoundsOnce) {
  const ForcedSimdLevel forced(GetParam());
  std::vector<uint16_t> bits(0x10000), got(0x10000);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (DType from : {DType::kF16, DType::kBF16}) {
    const DType to = from == DType::kF16 ? DType::kBF16 : DType::kF16;
    kernels::Convert(bits.data(), from, got.data(), to, 0x10000);
    for (size_t i = 0; i < bits.size(); ++i) {
      ASSERT_TRUE(SameLow(got[i], ToLowBits(FromLowBits(bits[i], from), to), to))
          << Name(from) << " " << i;
    }
  }
}

TEST_P(CpuConvertTest, LeavesTheNeighboursOfAnyLengthAlone) {
  const ForcedSimdLevel forced(GetParam());
  for (int64_t n = 0; n < 70; ++n) {
    std::vector<float> x(n + 1, 1.0f);
    std::vector<uint16_t> y(n + 1, 0xABCD);
    kernels::Convert(x.data(), DType::kF32, y.data(), DType::kBF16, n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 0x3F80) << n;
    ASSERT_EQ(y[n], 0xABCD) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuConvertTest, ::testing::ValuesIn(SimdLevelsHere()),
                         [](const auto& info) { return Name(info.param); });

}  // namespace
}  // namespace halftone::testing
