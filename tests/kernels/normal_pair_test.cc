// The functions of normal_pair.h beside those of the library.
#include "halftone/kernels/normal_pair.h"

#include <gtest/gtest.h>

#include <numbers>

#include "halftone/core/philox.h"

namespace halftone::kernels {
namespace {

TEST(NormalPair, LogarithmOf24Bits) {
  EXPECT_EQ(LogOf24Bits(1 << 24), 0);
  const auto check = [](uint32_t k) {
    const double want = std::log(static_cast<double>(k) * 0x1p-24);
    EXPECT_NEAR(LogOf24Bits(k), want, 4e-16 * std::abs(want)) << k;
  };
  for (uint32_t k = 1; k < 5000; ++k) {
    check(k);
    check((1 << 24) - k);
  }
  for (uint32_t k = 1; k < 1 << 24; k += 997) check(k);
}

TEST(NormalPair, SineAndCosineOfATurn) {
  for (uint32_t turn = 0; turn < 1 << 24; turn += turn % 8191 == 0 ? 1 : 499) {
    const double angle = 2 * std::numbers::pi * turn * 0x1p-24;
    double sine = 0, cosine = 0;
    SinCosOfTurn(turn << 8, &sine, &cosine);
    EXPECT_NEAR(sine, std::sin(angle), 8e-16) << turn;
    EXPECT_NEAR(cosine, std::cos(angle), 8e-16) << turn;
  }
  double sine = 1, cosine = 0;
  SinCosOfTurn(0, &sine, &cosine);
  EXPECT_EQ(sine, 0);
  EXPECT_EQ(cosine, 1);
}

TEST(NormalPair, IsThatOfCore) {
  for (uint64_t group = 0; group < 2000; ++group) {
    const PhiloxCounter words = PhiloxBlock(3, 1, group);
    const NormalPair want = NormalFromBits(words[0], words[1]);
    const NormalPairF64 got = NormalPairOf(words[0], words[1]);
    EXPECT_FLOAT_EQ(static_cast<float>(got.first), want.first);
    EXPECT_FLOAT_EQ(static_cast<float>(got.second), want.second);
  }
}

}  // namespace
}  // namespace halftone::kernels
