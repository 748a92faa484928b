#include "halftone/core/dtype.h"

#include <gtest/gtest.h>

#include <cfloat>

namespace halftone {
namespace {

constexpr DType kAll[] = {DType::kF64, DType::kF32, DType::kF16,  DType::kBF16,   DType::kI64,
                          DType::kI32, DType::kU8,  DType::kBool, DType::kF8E4M3, DType::kF8E5M2};

TEST(DTypeTest, SizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kF64), 8u);
  EXPECT_EQ(SizeOf(DType::kF32), 4u);
  EXPECT_EQ(SizeOf(DType::kF16), 2u);
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  EXPECT_EQ(SizeOf(DType::kI64), 8u);
  EXPECT_EQ(SizeOf(DType::kI32), 4u);
  EXPECT_EQ(SizeOf(DType::kU8), 1u);
  EXPECT_EQ(SizeOf(DType::kBool), 1u);
  EXPECT_STREQ(Name(DType::kBF16), "bf16");
  EXPECT_STREQ(Name(DType::kBool), "bool");
  EXPECT_EQ(SizeOf(DType::kF8E4M3), 1u);
  EXPECT_EQ(SizeOf(DType::kF8E5M2), 1u);
  EXPECT_STREQ(Name(DType::kF8E4M3), "f8e4m3");
  EXPECT_STREQ(Name(DType::kF8E5M2), "f8e5m2");
  EXPECT_EQ(DType::kF8, DType::kF8E4M3);
}

TEST(DTypeTest, ParseIsTheInverseOfName) {
  for (const DType dtype : kAll) EXPECT_EQ(ParseDType(Name(dtype)), dtype) << Name(dtype);
  for (const char* text : {"", "f8", "F32", "f32 ", "float", "bf1"}) {
    EXPECT_FALSE(ParseDType(text).has_value()) << text;
  }
}

TEST(DTypeTest, Classes) {
  int floats = 0, lows = 0, eights = 0, integers = 0;
  for (const DType dtype : kAll) {
    floats += IsFloat(dtype);
    lows += IsLow(dtype);
    eights += IsF8(dtype);
    integers += IsInteger(dtype);
    EXPECT_FALSE(IsFloat(dtype) && IsInteger(dtype));
    EXPECT_TRUE(!IsLow(dtype) || IsFloat(dtype));
  }
  EXPECT_EQ(floats, 6);
  EXPECT_EQ(lows, 2);
  EXPECT_EQ(eights, 2);
  EXPECT_EQ(integers, 3);
  EXPECT_FALSE(IsInteger(DType::kBool));
}

TEST(DTypeTest, PromotionTable) {
  // Rows and columns in the order of kAll.
  constexpr const char* kTable[10][10] = {
      {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64"},
      {"f64", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32"},
      {"f64", "f32", "f16", "f32", "f16", "f16", "f16", "f16", "f16", "f16"},
      {"f64", "f32", "f32", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16"},
      {"f64", "f32", "f16", "bf16", "i64", "i64", "i64", "i64", "f8e4m3", "f8e5m2"},
      {"f64", "f32", "f16", "bf16", "i64", "i32", "i32", "i32", "f8e4m3", "f8e5m2"},
      {"f64", "f32", "f16", "bf16", "i64", "i32", "u8", "u8", "f8e4m3", "f8e5m2"},
      {"f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool", "f8e4m3", "f8e5m2"},
      {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e4m3", "f8e4m3", "f8e4m3", "f8e4m3", "f32"},
      {"f64", "f32", "f16", "bf16", "f8e5m2", "f8e5m2", "f8e5m2", "f8e5m2", "f32", "f8e5m2"},
  };
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      EXPECT_STREQ(Name(Promote(kAll[a], kAll[b])), kTable[a][b])
          << Name(kAll[a]) << " with " << Name(kAll[b]);
    }
  }
}

TEST(DTypeTest, Limits) {
  EXPECT_EQ(MaxFinite(DType::kF64), DBL_MAX);
  EXPECT_EQ(MaxFinite(DType::kF32), static_cast<double>(FLT_MAX));
  EXPECT_EQ(MaxFinite(DType::kF16), 65504.0);
  EXPECT_EQ(MaxFinite(DType::kBF16), 255 * 0x1p120);  // 3.3895e38
  EXPECT_EQ(MinNormal(DType::kF64), DBL_MIN);
  EXPECT_EQ(MinNormal(DType::kF32), static_cast<double>(FLT_MIN));
  EXPECT_EQ(MinNormal(DType::kF16), 1.0 / 16384);
  EXPECT_EQ(MinNormal(DType::kBF16), static_cast<double>(FLT_MIN));
  EXPECT_EQ(MinSubnormal(DType::kF64), DBL_TRUE_MIN);
  EXPECT_EQ(MinSubnormal(DType::kF32), static_cast<double>(FLT_TRUE_MIN));
  EXPECT_EQ(MinSubnormal(DType::kF16), 1.0 / 16777216);
  EXPECT_EQ(MinSubnormal(DType::kBF16), DBL_MIN * 0x1p889);  // 2^-133
  EXPECT_EQ(MaxFinite(DType::kF8E4M3), 448.0);
  EXPECT_EQ(MaxFinite(DType::kF8E5M2), 57344.0);
  EXPECT_EQ(MinNormal(DType::kF8E4M3), 1.0 / 64);
  EXPECT_EQ(MinNormal(DType::kF8E5M2), 1.0 / 16384);
  EXPECT_EQ(MinSubnormal(DType::kF8E4M3), 1.0 / 512);
  EXPECT_EQ(MinSubnormal(DType::kF8E5M2), 1.0 / 65536);
  EXPECT_EQ(Epsilon(DType::kF8E4M3), 1.0 / 8);
  EXPECT_EQ(Epsilon(DType::kF8E5M2), 1.0 / 4);
  EXPECT_EQ(Epsilon(DType::kF64), DBL_EPSILON);
  EXPECT_EQ(Epsilon(DType::kF32), static_cast<double>(FLT_EPSILON));
  EXPECT_EQ(Epsilon(DType::kF16), 1.0 / 1024);
  EXPECT_EQ(Epsilon(DType::kBF16), 1.0 / 128);
}

}  // namespace
}  // namespace halftone
