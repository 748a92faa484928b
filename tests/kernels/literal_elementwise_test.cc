// The oracle itself: elementwise reference kernels pinned by numbers one can check by hand.

#include <gtest/gtest.h>

#include <numbers>

#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

const double kLn2 = std::numbers::ln2, kLn3 = std::log(3.0);

TEST(Literal, Activations) {
  EXPECT_THAT(Apply("relu", {Vec({-2, 0, 3, kNaN, -kInf})}), Is({0, 0, 3, kNaN, 0}));
  // e^-ln3 = 1/3, so 1 / (1 + 1/3) = 3/4.
  EXPECT_THAT(Apply("sigmoid", {Vec({0, kLn3, -kLn3, -kInf, kInf})}), Is({0.5, 0.75, 0.25, 0, 1}));
  // (2 - 1/2) / (2 + 1/2)
  EXPECT_THAT(Apply("tanh", {Vec({0, kLn2, -kLn2, kInf})}), Is({0, 0.6, -0.6, 1}));
  EXPECT_THAT(Apply("silu", {Vec({0, kLn3, -kLn3})}), Is({0, 0.75 * kLn3, -0.25 * kLn3}));
  // Phi(1) from tables of the normal distribution.
  EXPECT_THAT(Apply("gelu", {Vec({0, 1, -1})}), Is({0, 0.8413447460685429, -0.15865525393145705}));
  // PyTorch: gelu(1, approximate="tanh") in f64.
  EXPECT_THAT(Apply("gelu", {Vec({0, 1})}, {{"approximate", std::string("tanh")}}),
              Is({0, 0.8411919906082768}));
}

TEST(Literal, ActivationGradients) {
  // At 0 the slope of relu is 0; dy passes where y > 0, and where y is NaN.
  EXPECT_THAT(Apply("relu_grad", {Vec({0, 2, kNaN, 0}), Vec({5, 6, 7, kInf})}), Is({0, 6, 7, 0}));
  EXPECT_THAT(Apply("sigmoid_grad", {Vec({0.5, 0.75, 1}), Vec({4, 16, 3})}), Is({1, 3, 0}));
  EXPECT_THAT(Apply("tanh_grad", {Vec({0, 0.5, 1}), Vec({4, 4, 3})}), Is({4, 3, 0}));
  // s = 1/2: slope 1/2.
  EXPECT_THAT(Apply("silu_grad", {Vec({0}), Vec({8})}), Is({4}));
  // Phi(0) = 1/2; the tanh form too.
  EXPECT_THAT(Apply("gelu_grad", {Vec({0}), Vec({8})}), Is({4}));
  EXPECT_THAT(Apply("gelu_grad", {Vec({0}), Vec({8})}, {{"approximate", std::string("tanh")}}),
              Is({4}));
  // Phi(1) + phi(1), phi(1) = e^-1/2 / sqrt(2 pi) = 0.24197072451914337.
  EXPECT_THAT(Apply("gelu_grad", {Vec({1}), Vec({1})}),
              Is({0.8413447460685429 + 0.24197072451914337}));
}

TEST(Literal, Functions) {
  EXPECT_THAT(Apply("exp", {Vec({0, kLn2, -kInf, kInf})}), Is({1, 2, 0, kInf}));
  EXPECT_THAT(Apply("log", {Vec({1, std::numbers::e, 0, -1})}), Is({0, 1, -kInf, kNaN}));
  EXPECT_THAT(Apply("sqrt", {Vec({0, 9, 2.25, -1})}), Is({0, 3, 1.5, kNaN}));
  EXPECT_THAT(Apply("cos", {Vec({0, std::numbers::pi, std::numbers::pi / 3})}), Is({1, -1, 0.5}));
  EXPECT_THAT(Apply("sin", {Vec({0, std::numbers::pi / 2, std::numbers::pi / 6})}),
              Is({0, 1, 0.5}));
  EXPECT_THAT(Apply("erf", {Vec({0, 1, -kInf})}), Is({0, 0.8427007929497149, -1}));
  EXPECT_THAT(Apply("reciprocal", {Vec({4, -0.5, kInf, 0})}), Is({0.25, -2, 0, kInf}));
  EXPECT_THAT(Apply("neg", {Vec({1, -2, 0})}), Is({-1, 2, 0}));
  EXPECT_THAT(Apply("abs", {Vec({1, -2, kNaN, -kInf})}), Is({1, 2, kNaN, kInf}));
  EXPECT_THAT(Apply("floor", {Vec({1.5, -1.5, 2, -0.25})}), Is({1, -2, 2, -1}));
  EXPECT_THAT(Apply("neg", {Vec({7, -3}, DType::kI32)}), Is({-7, 3}));
}

TEST(Literal, Arithmetic) {
  const Tensor a = Vec({6, -1, 0.5}), b = Vec({3, 4, 0.25});
  EXPECT_THAT(Apply("add", {a, b}), Is({9, 3, 0.75}));
  EXPECT_THAT(Apply("sub", {a, b}), Is({3, -5, 0.25}));
  EXPECT_THAT(Apply("mul", {a, b}), Is({18, -4, 0.125}));
  EXPECT_THAT(Apply("div", {a, b}), Is({2, -0.25, 2}));
  EXPECT_THAT(Apply("maximum", {Vec({1, 5, kNaN, 2}), Vec({3, 4, 1, kNaN})}),
              Is({3, 5, kNaN, kNaN}));
  EXPECT_THAT(Apply("minimum", {Vec({1, 5, kNaN, 2}), Vec({3, 4, 1, kNaN})}),
              Is({1, 4, kNaN, kNaN}));
  EXPECT_THAT(Apply("pow", {Vec({2, 9, -2, 0}), Vec({10, 0.5, 3, 0})}), Is({1024, 3, -8, 1}));
}

TEST(Literal, BroadcastsAlignAtTheLastAxis) {
  EXPECT_THAT(Apply("add", {T({2, 3}, {0, 1, 2, 3, 4, 5}), Vec({10, 20, 30})}),
              Is({2, 3}, {10, 21, 32, 13, 24, 35}));
  EXPECT_THAT(Apply("mul", {T({2, 1}, {2, 3}), T({1, 3}, {1, 10, 100})}),
              Is({2, 3}, {2, 20, 200, 3, 30, 300}));
  EXPECT_THAT(Apply("sub", {T({}, {1}), Vec({1, 2})}), Is({0, -1}));
}

// One rounding to nearest even in the storage type.
TEST(Literal, RoundsOnce) {
  EXPECT_THAT(Apply("add", {Vec({2048}, DType::kF16), Vec({1}, DType::kF16)}), Is({2048}));
  EXPECT_THAT(Apply("add", {Vec({2050}, DType::kF16), Vec({1}, DType::kF16)}), Is({2052}));
  EXPECT_THAT(Apply("add", {Vec({256}, DType::kBF16), Vec({1}, DType::kBF16)}), Is({256}));
  EXPECT_THAT(Apply("add", {Vec({16777216}, DType::kF32), Vec({1}, DType::kF32)}), Is({16777216}));
  EXPECT_THAT(Apply("mul", {Vec({256, 255.875}, DType::kF16), Vec({256, 256}, DType::kF16)}),
              Is({kInf, 65504}));
  // e^11 = 59874.1, f16 steps by 32 there; e^11.1 = 66171 is beyond 65504.
  EXPECT_THAT(Apply("exp", {Vec({11, 11.1}, DType::kF16)}), Is({59872, kInf}));
}

TEST(Literal, IntegersAreExactAndWrap) {
  const int64_t big = (int64_t{1} << 53) + 1;  // no double
  const Tensor a = Tensor::FromVector<int64_t>({1}, {big});
  const Tensor one = Tensor::FromVector<int64_t>({1}, {1});
  EXPECT_EQ(Apply("sub", {a, one}).data<int64_t>()[0], big - 1);
  EXPECT_EQ(Apply("maximum", {a, Apply("sub", {a, one})}).data<int64_t>()[0], big);
  EXPECT_EQ(Apply("less", {Apply("sub", {a, one}), a}).at(0), 1);
  const Tensor largest = Tensor::FromVector<int64_t>({1}, {std::numeric_limits<int64_t>::max()});
  EXPECT_EQ(Apply("add", {largest, one}).data<int64_t>()[0], std::numeric_limits<int64_t>::min());
  EXPECT_THAT(Apply("add", {Vec({250}, DType::kU8), Vec({10}, DType::kU8)}), Is({4}));
}

TEST(Literal, Comparisons) {
  const Tensor a = Vec({1, 2, 3, kNaN}), b = Vec({2, 2, 2, kNaN});
  EXPECT_THAT(Apply("equal", {a, b}), Is({0, 1, 0, 0}));
  EXPECT_THAT(Apply("not_equal", {a, b}), Is({1, 0, 1, 1}));
  EXPECT_THAT(Apply("less", {a, b}), Is({1, 0, 0, 0}));
  EXPECT_THAT(Apply("less_equal", {a, b}), Is({1, 1, 0, 0}));
  EXPECT_THAT(Apply("greater", {a, b}), Is({0, 0, 1, 0}));
  EXPECT_THAT(Apply("greater_equal", {a, b}), Is({0, 1, 1, 0}));
  EXPECT_EQ(Apply("equal", {a, b}).dtype(), DType::kBool);
}

TEST(Literal, LogicAndFiniteness) {
  const Tensor a = Vec({0, 0, 1, 1}, DType::kBool), b = Vec({0, 1, 0, 1}, DType::kBool);
  EXPECT_THAT(Apply("logical_and", {a, b}), Is({0, 0, 0, 1}));
  EXPECT_THAT(Apply("logical_or", {a, b}), Is({0, 1, 1, 1}));
  EXPECT_THAT(Apply("logical_not", {a}), Is({1, 1, 0, 0}));
  EXPECT_THAT(Apply("isfinite", {Vec({1, kInf, -kInf, kNaN})}), Is({1, 0, 0, 0}));
  EXPECT_THAT(Apply("isfinite", {Vec({65504, 65520}, DType::kF16)}), Is({1, 0}));
}

TEST(Literal, Where) {
  const Tensor condition = Vec({1, 0}, DType::kBool);
  EXPECT_THAT(Apply("where", {condition, Vec({1, kNaN}), Vec({kInf, 2})}), Is({1, 2}));
  EXPECT_THAT(Apply("where", {condition, T({2, 1}, {1, 2}), T({}, {9})}), Is({2, 2}, {1, 9, 2, 9}));
}

TEST(Literal, Cast) {
  const auto cast = [](const Tensor& x, DType to) { return Apply("cast", {x}, {{"to", to}}); };
  EXPECT_THAT(cast(Vec({1.5, -1.5, 300, -1, kNaN}), DType::kU8), Is({1, 0, 255, 0, 0}));
  EXPECT_THAT(cast(Vec({2.75, -2.75}), DType::kI32), Is({2, -2}));
  EXPECT_THAT(cast(Vec({300, -5}, DType::kI64), DType::kU8), Is({255, 0}));
  EXPECT_THAT(cast(Vec({0, 0.5, kNaN}), DType::kBool), Is({0, 1, 1}));
  EXPECT_THAT(cast(Vec({65519, 65520, 1e-8}), DType::kF16), Is({65504, kInf, 0}));
  // 1 + 2^-8 is a tie between 1 and 1 + 2^-7.
  EXPECT_THAT(cast(Vec({1.00390625, 1.00390626}), DType::kBF16), Is({1, 1.0078125}));
  EXPECT_THAT(cast(Vec({1, 0}, DType::kBool), DType::kF16), Is({1, 0}));
}

// A conversion through double would round twice.
TEST(Literal, CastOfLargeIntegersRoundsOnce) {
  // 2^60 + 2^36 lies exactly between two floats; one more must round up, which double cannot see.
  const int64_t tie = (int64_t{1} << 60) + (int64_t{1} << 36);
  const Tensor x = Tensor::FromVector<int64_t>({2}, {tie, tie + 1});
  const Tensor y = Apply("cast", {x}, {{"to", DType::kF32}});
  EXPECT_EQ(y.data<float>()[0], 0x1p60f);
  EXPECT_EQ(y.data<float>()[1], 0x1p60f + 0x1p37f);
}

}  // namespace
}  // namespace halftone::testing
