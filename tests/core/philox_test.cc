#include "halftone/core/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace halftone {
namespace {

// From kat_vectors of Random123, the authors' own distribution.
TEST(PhiloxTest, PublishedVectors) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, BlockPlacesGroupRunAndSeed) {
  EXPECT_EQ(PhiloxBlock(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, UniformStaysBelowOne) {
  EXPECT_EQ(UniformFromBits(0), 0.0F);
  EXPECT_EQ(UniformFromBits(0xFF), 0.0F);
  EXPECT_EQ(UniformFromBits(0x80000000), 0.5F);
  EXPECT_EQ(UniformFromBits(0xFFFFFFFF), 1 - 0x1p-24F);
}

TEST(PhiloxStreamTest, WordsAreTheBlocksInOrder) {
  PhiloxStream stream(7, 9);
  for (uint64_t group = 0; group < 3; ++group) {
    for (const uint32_t word : PhiloxBlock(7, 9, group)) EXPECT_EQ(stream.NextWord(), word);
  }
}

TEST(PhiloxStreamTest, StreamsDiffer) {
  EXPECT_NE(PhiloxStream(7, 0).NextWord(), PhiloxStream(7, 1).NextWord());
  EXPECT_NE(PhiloxStream(7, 0).NextWord(), PhiloxStream(8, 0).NextWord());
}

TEST(PhiloxStreamTest, NormalHasTheMomentsOfANormal) {
  constexpr int kCount = 200'000;
  PhiloxStream stream(1);
  double sum = 0, squares = 0, fourth = 0;
  int inside = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = static_cast<double>(stream.Normal());
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    inside += std::abs(x) < 1;
  }
  // About five standard errors each.
  EXPECT_NEAR(sum / kCount, 0, 0.012);
  EXPECT_NEAR(squares / kCount, 1, 0.016);
  EXPECT_NEAR(fourth / kCount, 3, 0.11);
  EXPECT_NEAR(static_cast<double>(inside) / kCount, std::erf(1 / std::sqrt(2.0)), 0.006);
}

TEST(PhiloxStreamTest, NormalIsBoxMullerOfTwoWords) {
  const PhiloxCounter words = PhiloxBlock(5, 0, 0);
  const double u = ((words[0] >> 8) + 1.0) / 16777216;
  const double v = (words[1] >> 8) / 16777216.0;
  const double radius = std::sqrt(-2 * std::log(u));
  PhiloxStream stream(5);
  EXPECT_FLOAT_EQ(stream.Normal(), static_cast<float>(radius * std::cos(2 * M_PI * v)));
  EXPECT_FLOAT_EQ(stream.Normal(), static_cast<float>(radius * std::sin(2 * M_PI * v)));
  EXPECT_EQ(stream.NextWord(), words[2]);
}

TEST(PhiloxStreamTest, BelowIsEvenAndInRange) {
  PhiloxStream stream(3);
  EXPECT_EQ(stream.Below(1), 0u);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) {
    const uint64_t x = stream.Below(7);
    ASSERT_LT(x, 7u);
    ++counts[x];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  // Three quarters of the 64-bit range: one word modulo n would hit the lower third twice as often.
  const uint64_t n = uint64_t{3} << 62;
  int lower = 0;
  for (int i = 0; i < 30'000; ++i) lower += stream.Below(n) < n / 3;
  EXPECT_NEAR(lower, 10'000, 500);
}

TEST(PhiloxStreamDeathTest, BelowZero) { EXPECT_DEATH(PhiloxStream(1).Below(0), "Below\\(0\\)"); }

// Test vectors of the FNV reference code (64-bit FNV-1a).
TEST(HashNameTest, PublishedVectors) {
  const auto hash = [](const std::string& name) { return HashName(name.data(), name.size()); };
  EXPECT_EQ(hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace halftone
