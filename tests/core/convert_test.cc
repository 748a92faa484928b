#include "halftone/core/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "halftone/tests/support/special_values.h"

namespace halftone {
namespace {

constexpr DType kEveryType[] = {DType::kF64,    DType::kF32,   DType::kF16, DType::kBF16,
                                DType::kI64,    DType::kI32,   DType::kU8,  DType::kBool,
                                DType::kF8E4M3, DType::kF8E5M2};
using testing::kInf;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMaxI64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinI64 = std::numeric_limits<int64_t>::min();

// What a stored value reads as.
double Through(DType dtype, double x) {
  alignas(8) unsigned char cells[24] = {};
  StoreDouble(cells, dtype, 1, x);
  return LoadDouble(cells, dtype, 1);
}
double ThroughInt(DType dtype, int64_t x) {
  alignas(8) unsigned char cells[24] = {};
  StoreInt(cells, dtype, 1, x);
  return LoadDouble(cells, dtype, 1);
}
int64_t AsInt(double x) { return LoadInt(&x, DType::kF64, 0); }

TEST(ConvertTest, SmallIntegersPassThroughEveryType) {
  for (const DType dtype : kEveryType) {
    if (dtype == DType::kBool || IsF8(dtype)) continue;  // 8 bits do not hold 100
    for (const double x : {0.0, 1.0, 2.0, 100.0, 255.0}) {
      EXPECT_EQ(Through(dtype, x), x) << Name(dtype);
      EXPECT_EQ(ThroughInt(dtype, static_cast<int64_t>(x)), x) << Name(dtype);
    }
  }
}

TEST(ConvertTest, DoublesToIntegersTruncateAndSaturate) {
  EXPECT_EQ(Through(DType::kI32, 2.9), 2);
  EXPECT_EQ(Through(DType::kI32, -2.9), -2);
  EXPECT_EQ(Through(DType::kI32, 2147483647.5), 2147483647);
  EXPECT_EQ(Through(DType::kI32, 2147483648.0), 2147483647);
  EXPECT_EQ(Through(DType::kI32, -2147483648.9), -2147483648.0);
  EXPECT_EQ(Through(DType::kI32, -kInf), -2147483648.0);
  EXPECT_EQ(Through(DType::kI32, kNan), 0);
  EXPECT_EQ(Through(DType::kU8, 255.9), 255);
  EXPECT_EQ(Through(DType::kU8, 256.0), 255);
  EXPECT_EQ(Through(DType::kU8, -0.9), 0);
  EXPECT_EQ(Through(DType::kU8, -1.0), 0);
  EXPECT_EQ(AsInt(0x1p63), kMaxI64);
  EXPECT_EQ(AsInt(std::nextafter(0x1p63, 0.0)), kMaxI64 - 1023);
  EXPECT_EQ(AsInt(-0x1p63), kMinI64);
  EXPECT_EQ(AsInt(kInf), kMaxI64);
  EXPECT_EQ(AsInt(kNan), 0);
}

TEST(ConvertTest, IntegersSaturateAndKeepAllBits) {
  int64_t wide = 0;
  StoreInt(&wide, DType::kI64, 0, kMaxI64);
  EXPECT_EQ(LoadInt(&wide, DType::kI64, 0), kMaxI64);
  EXPECT_EQ(ThroughInt(DType::kI32, int64_t{1} << 40), 2147483647);
  EXPECT_EQ(ThroughInt(DType::kI32, -(int64_t{1} << 40)), -2147483648.0);
  EXPECT_EQ(ThroughInt(DType::kU8, 256), 255);
  EXPECT_EQ(ThroughInt(DType::kU8, -1), 0);
}

TEST(ConvertTest, IntegersRoundOnceToFloats) {
  // A tie of bf16 at 2^62 plus 1: a detour over double loses the 1 and rounds the tie down.
  const int64_t above_tie = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  EXPECT_EQ(ThroughInt(DType::kBF16, above_tie), 0x1p62 + 0x1p55);
  EXPECT_EQ(ThroughInt(DType::kBF16, above_tie - 1), 0x1p62);
  EXPECT_EQ(ThroughInt(DType::kBF16, -above_tie), -0x1p62 - 0x1p55);
  EXPECT_EQ(ThroughInt(DType::kBF16, kMinI64), -0x1p63);
  // The same for float: tie at 2^62 + 2^38.
  EXPECT_EQ(ThroughInt(DType::kF32, (int64_t{1} << 62) + (int64_t{1} << 38) + 1), 0x1p62 + 0x1p39);
  EXPECT_EQ(ThroughInt(DType::kF16, 2049), 2048);
  EXPECT_EQ(ThroughInt(DType::kF16, 65519), 65504);
  EXPECT_EQ(ThroughInt(DType::kF16, 65520), kInf);
  EXPECT_EQ(ThroughInt(DType::kF16, kMinI64), -kInf);
}

TEST(ConvertTest, EightBitsSaturateAndKeepWhatIsNotFinite) {
  EXPECT_EQ(Through(DType::kF8E4M3, 100), 96);  // a tie, to even: 96 is 1.100b, 104 1.101b
  EXPECT_EQ(Through(DType::kF8E4M3, 1e300), 448);
  EXPECT_EQ(Through(DType::kF8E4M3, -449), -448);
  EXPECT_EQ(Through(DType::kF8E5M2, -1e300), -57344);
  EXPECT_TRUE(std::isnan(Through(DType::kF8E4M3, kInf)));
  EXPECT_EQ(Through(DType::kF8E5M2, -kInf), -kInf);
  EXPECT_TRUE(std::isnan(Through(DType::kF8E5M2, kNan)));
  EXPECT_EQ(ThroughInt(DType::kF8E4M3, kMinI64), -448);
  EXPECT_EQ(ThroughInt(DType::kF8E5M2, kMaxI64), 57344);
  // A tie and a little more: a detour over float would go down to even.
  EXPECT_EQ(Through(DType::kF8E4M3, 1 + 0x1p-4 + 0x1p-40), 1.125);
  EXPECT_EQ(Through(DType::kF8E5M2, 1 + 0x1p-3 + 0x1p-40), 1.25);
}

TEST(ConvertTest, DoublesRoundOnceTo16Bits) {
  EXPECT_EQ(Through(DType::kF16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(Through(DType::kBF16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(Through(DType::kF32, 1e300), kInf);
  EXPECT_TRUE(std::isnan(Through(DType::kF16, kNan)));
  EXPECT_TRUE(std::isnan(Through(DType::kBF16, kNan)));
  EXPECT_TRUE(std::signbit(Through(DType::kBF16, -0.0)));
}

TEST(ConvertTest, BoolIsNotZero) {
  EXPECT_EQ(Through(DType::kBool, 0.25), 1);
  EXPECT_EQ(Through(DType::kBool, kNan), 1);
  EXPECT_EQ(Through(DType::kBool, -0.0), 0);
  EXPECT_EQ(ThroughInt(DType::kBool, -7), 1);
  const unsigned char foreign = 0x80;
  EXPECT_EQ(LoadDouble(&foreign, DType::kBool, 0), 1);
  EXPECT_EQ(LoadInt(&foreign, DType::kBool, 0), 1);
}

TEST(ConvertTest, ArraysFollowTheElementRules) {
  constexpr int kCount = 6;
  const double values[kCount] = {0, 1.5, -3, 300.75, 1 + 0x1p-11 + 0x1p-40, 70000};
  for (const DType from : kEveryType) {
    for (const DType to : kEveryType) {
      alignas(8) unsigned char source[8 * kCount];
      alignas(8) unsigned char got[8 * kCount + 1];
      alignas(8) unsigned char expected[8 * kCount + 1];
      std::memset(got, 0xEE, sizeof got);
      std::memset(expected, 0xEE, sizeof expected);
      for (int i = 0; i < kCount; ++i) {
        StoreDouble(source, from, i, values[i]);
        if (IsFloat(from)) {
          StoreDouble(expected, to, i, LoadDouble(source, from, i));
        } else {
          StoreInt(expected, to, i, LoadInt(source, from, i));
        }
      }
      ConvertElements(source, from, got, to, kCount);
      // The bytes behind the last element stay untouched.
      EXPECT_EQ(std::memcmp(got, expected, sizeof got), 0) << Name(from) << " to " << Name(to);
    }
  }
}

TEST(ConvertTest, NothingToConvert) {
  const float source = 1;
  uint16_t got = 0xEEEE;
  ConvertElements(&source, DType::kF32, &got, DType::kF16, 0);
  EXPECT_EQ(got, 0xEEEE) << "an element was written where there is none";
  // Empty tensors have no bytes at all; sanitizers see an access.
  ConvertElements(nullptr, DType::kF32, nullptr, DType::kF16, 0);
}

}  // namespace
}  // namespace halftone
