// Arithmetic of ranges, by hand.
#include "halftone/graph/ir/value_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "halftone/core/strings.h"

namespace halftone::ir {
namespace {

// "[lo, hi] + unknown".
std::string RangeText(const ValueRange& range) {
  return Concat("[", range.lo + 0.0, ", ", range.hi + 0.0, "]",
                range.is_closed() ? "" : Concat(" + ", range.unknown));
}

const ValueRange kUnit = ValueRange::Between(0, 1), kOne = ValueRange::Between(1, 1);

TEST(ValueRange, Sums) {
  EXPECT_EQ(RangeText(kUnit + ValueRange::Between(-3, 2)), "[-3, 3]");
  EXPECT_EQ(RangeText(kUnit - ValueRange::Between(-3, 2)), "[-2, 4]");
  EXPECT_EQ(RangeText(ValueRange::Unknown() + ValueRange::Between(-1e9, 0)), "[-1e+09, 0] + 1");
  EXPECT_EQ(RangeText(ValueRange::Unknown() + ValueRange::Unknown()), "[0, 0] + 1");
}

TEST(ValueRange, Products) {
  EXPECT_EQ(RangeText(ValueRange::Between(-2, 3) * ValueRange::Between(-5, 1)), "[-15, 10]");
  EXPECT_EQ(RangeText(ValueRange::Unknown() * ValueRange::Between(-8, 2)), "[0, 0] + 8");
  EXPECT_EQ(RangeText(ValueRange::Unknown() * ValueRange::Unknown()), "[0, 0] + 1");
  EXPECT_EQ(RangeText(ValueRange::Unknown() * ValueRange::Between(0, 0)), "[0, 0]");
}

TEST(ValueRange, Quotients) {
  EXPECT_EQ(RangeText(ValueRange::Between(-4, 8) / ValueRange::Between(2, 4)), "[-2, 4]");
  EXPECT_EQ(RangeText(kOne / ValueRange::Between(-4, -2)), "[-0.5, -0.25]");
  EXPECT_EQ(RangeText(ValueRange::Unknown() / ValueRange::Between(0.5, 4)), "[0, 0] + 2");
  EXPECT_EQ(RangeText(kOne / kUnit), "[0, 0] + 1") << "nothing bounds it";
  EXPECT_EQ(RangeText(kOne / ValueRange::Unknown()), "[0, 0] + 1");
}

TEST(ValueRange, SelectionsAndFunctions) {
  EXPECT_EQ(RangeText(Larger(ValueRange::Between(-4, 8), kUnit)), "[0, 8]");
  EXPECT_EQ(RangeText(Smaller(ValueRange::Between(-4, 8), kUnit)), "[-4, 1]");
  EXPECT_EQ(RangeText(Either(ValueRange::Between(-1e9, -1e9), ValueRange::Unknown())),
            "[-1e+09, 0] + 1");
  EXPECT_EQ(RangeText(Rising(std::sqrt, ValueRange::Between(4, 9))), "[2, 3]");
  EXPECT_EQ(RangeText(Rising(std::sqrt, ValueRange::Unknown())), "[0, 0] + 1");
  EXPECT_EQ(RangeText(Rising(std::exp, ValueRange::Between(0, 1e4))), "[0, 0] + 1") << "infinite";
}

TEST(ValueRange, DifferencesThatMayVanish) {
  EXPECT_TRUE(DifferenceMayVanish(kOne, kUnit));
  EXPECT_TRUE(DifferenceMayVanish(kUnit, kOne));
  EXPECT_TRUE(DifferenceMayVanish(ValueRange::Between(-1, 1), ValueRange::Between(-1, -1)));
  EXPECT_FALSE(DifferenceMayVanish(ValueRange::Between(2, 2), kUnit));
  EXPECT_FALSE(DifferenceMayVanish(kUnit, ValueRange::Between(-1, 0))) << "0 is 0 in 16 bit too";
  EXPECT_FALSE(DifferenceMayVanish(kOne, ValueRange::Unknown()));
  const ValueRange mask{0, 1, 0, true}, whole_one{1, 1, 0, true};
  EXPECT_FALSE(DifferenceMayVanish(whole_one, mask)) << "exact";
}

}  // namespace
}  // namespace halftone::ir
