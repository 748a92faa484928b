// The oracle of quantisation to 8 bits, its products and scales, pinned by numbers one can check by
// hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
// The inner name keeps helpers apart from those of other files in a batched compile.
namespace literal_f8 {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor F32(const Reals64& values) { return Vec(values, DType::kF32); }
Tensor Number(double value) { return Tensor::Scalar(DType::kF32, value); }

std::vector<Tensor> Quantise(const Reals64& x, double scale, DType to) {
  return RunOp("f8_quantise", {F32(x), Number(scale)}, {{"to", to}});
}

TEST(LiteralF8, QuantisesToE4M3) {
  // 0.6 lies between 0.5625 and 0.625; 2^-10 and 3 2^-10 are ties below the smallest normal number.
  const auto got = Quantise({0.3, -1000, 0x1p-11, 3 * 0x1p-11, -0.5}, 2, DType::kF8E4M3);
  EXPECT_EQ(got[0].dtype(), DType::kF8E4M3);
  EXPECT_THAT(got[0], Is({0.625, -448, 0, 2 * 0x1p-9, -1}));
  EXPECT_EQ(got[1].item(), 0.5);
  EXPECT_EQ(got[2].item(), 1000);
}

TEST(LiteralF8, QuantisesToE5M2) {
  // 0.3 lies between 0.25 and 0.3125.
  const auto got = Quantise({0.3, 1e6, -70000, 0x1p-17, -0.0}, 1, DType::kF8E5M2);
  EXPECT_THAT(got[0], Is({0.3125, 57344, -57344, 0, -0.0}));
  EXPECT_EQ(got[2].item(), 1e6);
}

TEST(LiteralF8, WhatIsNotFiniteStaysSo) {
  auto got = Quantise({1, -kInf}, 2, DType::kF8E5M2);
  EXPECT_EQ(got[0].at(1), -kInf);
  EXPECT_EQ(got[2].item(), kInf);
  got = Quantise({1, kInf}, 2, DType::kF8E4M3);
  EXPECT_TRUE(std::isnan(got[0].at(1)));
  got = Quantise({kNan, 3}, 2, DType::kF8E5M2);
  EXPECT_TRUE(std::isnan(got[0].at(0)));
  EXPECT_TRUE(std::isnan(got[2].item())) << "a NaN is the largest of all";
}

TEST(LiteralF8, MultipliesWhatTheOperandsStandFor) {
  const Tensor a = Tensor::Of(DType::kF8E4M3, {1, 2}, {1.5, -2});
  const Tensor b = Tensor::Of(DType::kF8E5M2, {2, 2}, {4, 8, 0.25, 1});
  const auto run = [&](ir::Attributes attrs, std::vector<Tensor> more = {}) {
    std::vector<Tensor> inputs = {a, b, Number(0.5), Number(4)};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return RunOp("f8_matmul", inputs, std::move(attrs))[0];
  };
  EXPECT_THAT(run({{"to", DType::kF32}}), Is(Shape{1, 2}, {11, 20}));  // 5.5 and 10, times 2
  EXPECT_THAT(run({{"to", DType::kF32}, {"transpose_b", true}}), Is(Shape{1, 2}, {-20, -3.25}));
  EXPECT_THAT(run({{"to", DType::kBF16}}, {F32({1, -20})}), Is(Shape{1, 2}, {12, 0}));
}

std::vector<Tensor> Update(const Reals64& history, double scale, double amax, DType to,
                           int64_t margin = 0) {
  return RunOp("f8_scale_update", {F32(history), Number(scale), Number(amax)},
               {{"to", to}, {"margin", margin}});
}

TEST(LiteralF8, ScalesFollowTheLargestOfTheHistory) {
  auto got = Update({1, 2, 5}, 7, 3, DType::kF8E4M3);
  EXPECT_THAT(got[0], Is({3, 1, 2})) << "5 is forgotten";
  EXPECT_EQ(got[1].item(), 128);  // 448 / 3 = 149
  got = Update({1, 8}, 7, 3, DType::kF8E5M2);
  EXPECT_EQ(got[1].item(), 16384);  // 57344 / 3 = 19115
  EXPECT_EQ(Update({0}, 7, 448, DType::kF8E4M3)[1].item(), 1);
  EXPECT_EQ(Update({0}, 7, 449, DType::kF8E4M3)[1].item(), 0.5);
  EXPECT_EQ(Update({0}, 7, 3, DType::kF8E4M3, /*margin=*/2)[1].item(), 32);
}

TEST(LiteralF8, WhatIsNotFiniteOrZeroMovesNoScale) {
  for (const double amax : {kInf, kNan, 0.0}) {
    auto got = Update({0, 0}, 7, amax, DType::kF8E4M3);
    EXPECT_THAT(got[0], Is({0, 0})) << amax;
    EXPECT_EQ(got[1].item(), 7) << amax;
    got = Update({0.25, 9}, 7, amax, DType::kF8E4M3);
    EXPECT_THAT(got[0], Is({0, 0.25})) << amax;
    EXPECT_EQ(got[1].item(), 1024) << amax;  // 448 / 0.25 = 1792
  }
}

TEST(LiteralF8, ScalesStayBetweenTheirBounds) {
  EXPECT_EQ(Update({0}, 1, 1e-38, DType::kF8E4M3)[1].item(), 0x1p60);
  EXPECT_EQ(Update({0}, 1, 3e38, DType::kF8E4M3)[1].item(), 0x1p-60);
}

}  // namespace
}  // namespace literal_f8
}  // namespace halftone::testing
