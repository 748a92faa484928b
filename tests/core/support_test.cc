// tests/support/tensors.h: the comparisons other tests rely on must be able to fail.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor Row(std::initializer_list<double> values) {
  return Tensor::Of(DType::kF64, Shape{static_cast<int64_t>(values.size())}, values);
}

TEST(IsCloseTest, ToleranceIsASum) {
  EXPECT_TRUE(IsClose(Row({1, 2}), Row({1, 2}), 0, 0));
  EXPECT_TRUE(IsClose(Row({101}), Row({100}), 0.01, 0));
  EXPECT_FALSE(IsClose(Row({101.5}), Row({100}), 0.01, 0));
  EXPECT_TRUE(IsClose(Row({101.5}), Row({100}), 0.01, 1));
  EXPECT_FALSE(IsClose(Row({1e-9}), Row({0}), 0.5, 0));
}

TEST(IsCloseTest, NonFiniteMustMatch) {
  EXPECT_TRUE(IsClose(Row({kNan, kInf, -kInf}), Row({kNan, kInf, -kInf}), 0, 0));
  EXPECT_FALSE(IsClose(Row({kNan}), Row({1}), 1, 1));
  EXPECT_FALSE(IsClose(Row({1}), Row({kNan}), 1, 1));
  EXPECT_FALSE(IsClose(Row({1}), Row({kInf}), 1, 1));
  EXPECT_FALSE(IsClose(Row({-kInf}), Row({kInf}), 1, 1));
  EXPECT_FALSE(IsClose(Row({kInf}), Row({1}), 1, 1));
}

TEST(IsCloseTest, MessageNamesTheWorstElement) {
  const Tensor got = Tensor::Of(DType::kF32, Shape{2, 3}, {0, 1, 2, 3, 4.5, 5.25});
  const Tensor expected = Tensor::Of(DType::kF32, Shape{2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(std::string(IsClose(got, expected, 0.01, 0).message()),
            "2 of 6 elements of f32[2,3] differ; worst at [1,1]: got 4.5, expected 4 (error 0.5, "
            "rtol 0.01, atol 0)");
  EXPECT_EQ(std::string(IsClose(got, Row({1}), 0, 0).message()), "got f32[2,3], expected f64[1]");
  EXPECT_FALSE(IsClose(Tensor(), Tensor(), 0, 0));
}

TEST(ExpectCloseTest, FailsTheTest) {
  ExpectClose(Row({1}), Row({1}), 0);
  EXPECT_NONFATAL_FAILURE(ExpectClose(Row({1}), Row({2}), 0.1), "worst at [0]");
}

TEST(MaxRelErrorTest, IsRelativeToTheLargest) {
  EXPECT_EQ(MaxRelError(Row({0.5, 100}), Row({0, 100})), 0.005);
  EXPECT_EQ(MaxRelError(Row({0.5}), Row({0})), 0.5);
  EXPECT_EQ(MaxRelError(Row({3}), Row({3})), 0);
  EXPECT_EQ(MaxRelError(Row({kNan}), Row({3})), kInf);
  EXPECT_EQ(MaxRelError(Row({1, kInf}), Row({2, kInf})), 0.5);
}

TEST(RandomTensorTest, RepeatsAndStaysInRange) {
  const Tensor a = RandomTensor(DType::kF32, Shape{1000}, 3, 2, 5);
  EXPECT_TRUE(BitEqual(a, RandomTensor(DType::kF32, Shape{1000}, 3, 2, 5)));
  EXPECT_FALSE(BitEqual(a, RandomTensor(DType::kF32, Shape{1000}, 4, 2, 5)));
  double low = kInf, high = -kInf;
  for (const double x : a.ToVector()) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  EXPECT_GE(low, 2);
  EXPECT_LT(low, 2.1);
  EXPECT_LT(high, 5);
  EXPECT_GT(high, 4.9);
  for (const double x : RandomTensor(DType::kI64, Shape{100}, 1, -2, 3).ToVector()) {
    EXPECT_TRUE(x == -2 || x == -1 || x == 0 || x == 1 || x == 2) << x;
  }
  for (const double x : RandomTensor(DType::kBool, Shape{100}, 1).ToVector()) {
    EXPECT_TRUE(x == 0 || x == 1) << x;
  }
}

}  // namespace
}  // namespace halftone::testing
